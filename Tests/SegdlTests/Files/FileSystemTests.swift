import Foundation
import Origin
import Testing

/// The real command on real file systems that lack features of Linux's own, each mounted for one run in its own mount
/// namespace.
@Suite(.enabled(if: getuid() == 0, "only root may mount a file system"))
struct FileSystemTests {
    private static func has(_ tools: String...) -> Bool {
        tools.allSatisfy { tool in
            ["/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"].contains {
                FileManager.default.isExecutableFile(atPath: $0 + tool)
            }
        }
    }

    private static func knows(_ type: String) -> Bool {
        let types = FileManager.default.contents(atPath: "/proc/filesystems") ?? Data()
        return String(decoding: types, as: UTF8.self).split(whereSeparator: \.isWhitespace).contains(Substring(type))
    }

    /// Fetches a file into an empty file system, and runs the command again.
    private static func fetch(make: String, mount: String) async throws {
        try await withOptionScene { origin, command in
            let shell = """
                set -e; truncate -s 64M image; \(make) image >&2; mkdir m
                loop=$(losetup --find --show image); trap 'losetup --detach $loop' EXIT
                loop=$loop unshare -m bash -c '\(mount) $loop m >&2; cd m; "$0" "$@"; s=$?
                "$0" "$@"; t=$?; ls -A >../names; cp f.bin ..; cd ..; umount m; exit $((s > t ? s : t))' "$0" "$@"
                """
            let url = origin.url("/9M/f.bin")
            let known = try await command.run([], shell: #""$0" -q -o known "\#(url)" && sha256sum known"#)
            let outcome = try await command.run(
                ["-s", "4", "--checksum", "sha256=\(known.output.prefix(64))", "-o", "f.bin", url], shell: shell)
            #expect(outcome.status == 0, "\(outcome)")
            let names = try String(contentsOfFile: command.path("names"), encoding: .utf8)
            #expect(names == "f.bin\n")
            #expect(command.holds("f.bin", 9 << 20))
            let isKept = outcome.errors.contains("already complete")
            #expect(isKept, "the second run recognizes the file of the first: \(outcome)")
        }
    }

    @Test(
        "A file is fetched on FAT, which has no hard links and no attributes",
        .enabled(if: knows("vfat") && has("mkfs.vfat", "losetup"), "the kernel has no vfat, or mkfs.vfat is missing"))
    func vfat() async throws {
        try await Self.fetch(make: "mkfs.vfat", mount: "mount -t vfat")
    }

    @Test(
        "A file is fetched on exFAT in user space, which has neither hard links nor renames that do not replace",
        .enabled(if: knows("fuse") && has("mkfs.exfat", "mount.exfat-fuse", "losetup"), "exfat-fuse is missing"))
    func fuse() async throws {
        try await Self.fetch(make: "mkfs.exfat", mount: "mount.exfat-fuse")
    }
}
