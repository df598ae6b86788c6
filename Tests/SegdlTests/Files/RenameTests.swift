import Foundation
import Origin
import Testing

/// Several processes at once that want the same name and, with `--if-exists rename`, take the next one.
@Suite struct RenameTests {
    /// Six at once; the status of the last that failed.
    private static let shell = """
        for i in 1 2 3 4 5 6; do "$0" "$@" & p[i]=$!; done
        for i in 1 2 3 4 5 6; do wait "${p[i]}" || s=$?; done; exit ${s:-0}
        """

    private static let names = ["f.bin"] + (1...5).map { "f.\($0).bin" }

    /// - Parameter settings: The origin's behaviour: none, so that the processes collide at any step; a late answer, so
    ///   that all check the name before any starts; a slow answer, so that the first are still running when the last
    ///   start.
    @Test(
        "Processes that want one name all complete, each with a file of its own",
        arguments: ["", "latency=300ms", "rate=4M"],
        [["-o", "f.bin"], ["-d", "."]])
    func sixAtOnce(settings: String, destination: [String]) async throws {
        try await withOptionScene { origin, command in
            for size: Int64 in [1, 9 << 20] {
                let url = origin.url("/\(size)/f.bin?\(settings)")
                let arguments = ["--if-exists", "rename"] + destination + [url]
                let outcome = try await command.run(arguments, shell: Self.shell)
                #expect(outcome.status == 0, "\(outcome)")
                let names = try FileManager.default.contentsOfDirectory(atPath: command.directory).sorted()
                #expect(names == Self.names.sorted())
                for name in Self.names {
                    #expect(command.holds(name, size))
                    try FileManager.default.removeItem(atPath: command.path(name))
                }
            }
        }
    }

    @Test("A name from the response is numbered too")
    func suggested() async throws {
        try await withOptionScene { origin, command in
            let disposition = "attachment%3b%20filename%3d%22f.bin%22"
            let url = origin.url("/4M/u?rate=4M&disposition=\(disposition)")
            let outcome = try await command.run(["--if-exists", "rename", url], shell: Self.shell)
            #expect(outcome.status == 0, "\(outcome)")
            let names = try FileManager.default.contentsOfDirectory(atPath: command.directory).sorted()
            #expect(names == Self.names.sorted())
            for name in Self.names { #expect(command.holds(name, 4 << 20)) }
        }
    }

    /// A process that was creating the part lost it to the one that surveyed the name.
    @Test(
        "An empty part that no process holds is used, or deleted if the response names the file otherwise",
        arguments: ["", "&disposition=attachment%3b%20filename%3d%22g.bin%22"])
    func emptyPart(query: String) async throws {
        try await withOptionScene { origin, command in
            try command.write("mine", to: "f.bin")
            try command.write("", to: "f.1.bin.segdl-part")
            let outcome = try await command.run([
                "--if-exists", "rename", "-d", ".", origin.url("/4M/f.bin?rate=40M\(query)"),
            ])
            #expect(outcome.status == 0, "\(outcome)")
            let name = query.isEmpty ? "f.1.bin" : "g.bin"
            #expect(command.holds(name, 4 << 20))
            let names = try FileManager.default.contentsOfDirectory(atPath: command.directory)
            #expect(Set(names) == [name, "f.bin"])
        }
    }

    @Test("A file that appears before the end keeps the name, and the download takes the next one")
    func atTheEnd() async throws {
        try await withOptionScene { origin, command in
            let arguments = ["--json", "-s", "4", "--if-exists", "rename", "-o", "f.bin"]
            let outcome = try await command.run(arguments + [origin.plainURL("/4M/f.bin?stall-after=600000:all")]) {
                _ in
                await origin.log.waitForBytes(sent: 600_000)
                try? command.write("mine", to: "f.bin")
                try? command.write("mine", to: "f.1.bin")
                _ = origin.plainURL("/4M/f.bin")
                try? await origin.disconnect()
            }
            #expect(outcome.status == 0, "\(outcome)")
            #expect(outcome.event("completed")?["path"] as? String == "f.2.bin", "\(outcome)")
            #expect(command.holds("f.2.bin", 4 << 20))
            let names = try FileManager.default.contentsOfDirectory(atPath: command.directory).sorted()
            #expect(names == ["f.1.bin", "f.2.bin", "f.bin"])
        }
    }
}
