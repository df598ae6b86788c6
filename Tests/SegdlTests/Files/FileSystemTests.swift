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

    /// Fetches a file into an empty file system in a file.
    private static func fetch(make: String, mount: String) async throws {
        try await Self.fetch(
            prepare: """
                truncate -s 64M image; \(make) image >&2
                export loop=$(losetup --find --show image); trap 'losetup --detach $loop' EXIT
                """, mount: "\(mount) $loop m", isInterrupted: false)
    }

    /// Fetches a file into an empty file system, and runs the command again.
    ///
    /// - Parameter isInterrupted: Whether the first run is killed after a part of the file.
    private static func fetch(prepare: String, mount: String, isInterrupted: Bool = true) async throws {
        let first = isInterrupted ? #"timeout -s KILL 1 "$0" --limit-rate 3M "$@" >&2;"# : ""
        try await withOptionScene { origin, command in
            // What programs in user space keep of an open file that was replaced goes a moment after it is closed.
            let shell = """
                set -e; mkdir m; \(prepare)
                unshare -m bash -c '\(mount) </dev/null >&2 || exit 99; cd m; \(first)
                "$0" "$@"; s=$?; "$0" "$@"; t=$?
                for i in $(seq 100); do ls -A | grep -q fuse_hidden || break; sleep 0.1; done
                ls -A >../names; cp f.bin ..; cd ..; umount m; exit $((s > t ? s : t))' "$0" "$@"
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

    private static let hasFUSE = knows("fuse") && FileManager.default.fileExists(atPath: "/dev/fuse")

    @Test(
        "A file is fetched on sshfs, where a hard link has another inode number than the file",
        .enabled(if: hasFUSE && has("sshfs"), "/dev/fuse or sshfs is missing"),
        .enabled(if: FileManager.default.isExecutableFile(atPath: sftpServer), "\(sftpServer) is missing"))
    func sshfs() async throws {
        // The server is started here in place of ssh.
        try await Self.fetch(
            prepare: "mkdir a; printf '#!/bin/sh\\nexec \(Self.sftpServer)\\n' >ssh; chmod +x ssh",
            mount: "sshfs -o ssh_command=$PWD/ssh host:$PWD/a m")
    }

    private static let sftpServer = "/usr/lib/openssh/sftp-server"

    @Test(
        "A file is fetched on mergerfs, which joins directories",
        .enabled(if: hasFUSE && has("mergerfs"), "/dev/fuse or mergerfs is missing"))
    func mergerfs() async throws {
        try await Self.fetch(prepare: "mkdir a b", mount: "mergerfs -o category.create=rand $PWD/a:$PWD/b m")
    }

    @Test(
        "A file is fetched on unionfs-fuse, which puts one directory over another",
        .enabled(if: hasFUSE && has("unionfs-fuse"), "/dev/fuse or unionfs-fuse is missing"))
    func unionfs() async throws {
        try await Self.fetch(
            prepare: "mkdir a b", mount: "unionfs-fuse -o cow,hide_meta_files $PWD/a=RW:$PWD/b=RO m")
    }

    @Test(
        "A file is fetched on bindfs, where a hard link keeps the inode number",
        .enabled(if: hasFUSE && has("bindfs"), "/dev/fuse or bindfs is missing"))
    func bindfs() async throws {
        try await Self.fetch(prepare: "mkdir a", mount: "bindfs $PWD/a m")
    }

    @Test(
        "A file is fetched on gocryptfs, which encrypts a directory",
        .enabled(if: hasFUSE && has("gocryptfs"), "/dev/fuse or gocryptfs is missing"))
    func gocryptfs() async throws {
        try await Self.fetch(
            prepare: "mkdir a; echo password >p; gocryptfs -init -q -passfile p a",
            mount: "gocryptfs -q -passfile p a m")
    }
}
