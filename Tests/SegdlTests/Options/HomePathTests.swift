import ArgumentParser
import Foundation
import Origin
import SegmentedDownload
import Testing

@testable import segdl

/// The home directory where no shell expands it.
@Suite("Paths in the home directory")
struct HomePathTests {
    private static let home = ProcessInfo.processInfo.environment["HOME"] ?? ""

    @Test(
        "~, $HOME and ${HOME} at the beginning are the home directory, and other text stays",
        arguments: [
            ("~", "HOME"), ("~/", "HOME/"), ("~/a/~", "HOME/a/~"), ("$HOME/a", "HOME/a"), ("${HOME}/a", "HOME/a"),
            ("./~/a", "./~/a"), ("a/~/b", "a/~/b"), ("/~", "/~"), ("~$Report.docx", "~$Report.docx"), ("$5/a", "$5/a"),
            ("", ""),
        ])
    func expanded(text: String, path: String) throws {
        try #require(Self.home.hasPrefix("/"))
        #expect(HomePath.expanded(text) == path.replacing("HOME", with: Self.home))
        #expect(HomePath.expanded(HomePath.literal(text)) == HomePath.literal(text))
    }

    @Test(
        "Other users and other variables are refused, but not in the name of a file",
        arguments: [("~other/a", nil), ("${XDG_DATA_HOME}/a", nil), ("$DATA/a", nil), ("~other", "~other")])
    func refused(text: String, file: String?) {
        #expect(HomePath.expanded(text) == file)
        #expect(HomePath.expanded(text, isDirectory: true) == nil)
        #expect(HomePath.objection(to: text, isDirectory: true)?.contains("./") == true)
    }

    @Test("Every option of the command that takes a file or a directory expands it")
    func options() throws {
        let options = try #require(OptionOutline.get).options.filter { option in
            let name = option.valueName ?? ""
            return name.contains("FILE") || name.contains("DIR") || option.longNames.contains("list-from")
        }
        let names = options.flatMap(\.longNames)
        #expect(Set(names).isSuperset(of: ["dir", "output", "cookie", "keep-history", "cacert", "input-file", "job"]))
        for name in names {
            // Where an option has no effect alone.
            let others = name.hasSuffix("key") ? ["--cert=/c"] : []
            var text = ""
            dump(try GetCommand.parse(["--\(name)=~/x"] + others + ["http://a/b"]), to: &text)
            #expect(text.contains("\(Self.home)/x") && !text.contains("\"~/x\""), "--\(name)")
        }
        #expect(try ResumeCommand.parse(["--dir=~/x", "a"]).dir == "\(Self.home)/x")
        #expect(try BenchCommand.parse(["--dir=~/x", "http://a/b"]).dir == "\(Self.home)/x")
        #expect(try DaemonCommand.parse(["--dir=~/x"]).dir == "\(Self.home)/x")
        #expect(throws: (any Error).self) { try GetCommand.parse(["--dir=~other", "http://a/b"]) }
    }

    @Test(
        "The configuration file, variables and lists expand it, and a name that a server chooses stays in its directory"
    )
    func places() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let manager = FileManager.default
                for directory in ["config/segdl", "home"] {
                    try manager.createDirectory(atPath: command.path(directory), withIntermediateDirectories: true)
                }
                let environment = ["HOME": command.path("home"), "XDG_CONFIG_HOME": command.path("config")]
                func run(_ arguments: [String], _ variables: [String: String] = [:]) async throws {
                    let outcome = try await command.run(
                        arguments, environment: environment.merging(variables) { $1 })
                    #expect(outcome.status == 0, "\(outcome)")
                }
                try command.write("dir = ~/file\nkeep-history = ${HOME}/history\n", to: "config/segdl/config")
                try await run([origin.url("/1K/a.bin")])
                #expect(command.exists("home/file/a.bin") && command.exists("home/history"))
                try command.write("dir = ~other\n", to: "config/segdl/config")
                let refused = try await command.run([origin.url("/1K/a.bin")], environment: environment)
                #expect(refused.status == 2 && refused.errors.contains("config, line 1: dir must be"), "\(refused)")
                try command.write("", to: "config/segdl/config")
                try await run([origin.url("/1K/b.bin")], ["SEGDL_DIR": "~/variable"])
                #expect(command.exists("home/variable/b.bin"))
                try command.write(origin.url("/1K/c.bin") + "\n  dir=~/list\n", to: "list")
                try await run(["-i", "list"])
                #expect(command.exists("home/list/c.bin"))
                try command.write(
                    "<metalink xmlns='urn:ietf:params:xml:ns:metalink'><file name='~/d.bin'>"
                        + "<url>\(origin.url("/1K/d.bin"))</url></file></metalink>", to: "x.meta4")
                try await run(["-d", "out", "x.meta4"])
                #expect(!command.exists("home/d.bin"))
                #expect(!manager.fileExists(atPath: command.path("~")))
            }
        }
    }
}
