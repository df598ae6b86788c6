import Foundation
import Origin
import Testing

@testable import segdl

@Suite("Configuration file")
struct ConfigurationFileTests {
    @Test("A line is the long name of an option, with its value if it has one")
    func lines() throws {
        let text = "# all\n\nsegments = 4\n  user-agent=me = you \r\n--remote-time\nquiet = true\nremember = false\n"
        let file = try ConfigurationFile(text, path: "c")
        #expect(file.settings.flatMap(\.arguments) == ["--quiet"])
        #expect(
            file.edits.map { "\($0.option.name)=\($0.text)" }
                == ["segments=4", "user-agent=me = you", "remote-time=true"])
        for bad in ["s = 4", "Segments = 4", "= 4", "two words = 1", "-s 4"] {
            #expect(throws: ConfigurationFile.Problem.self, "\(bad)") {
                try ConfigurationFile(bad, path: "c")
            }
        }
    }

    @Test(
        "A comment follows a blank, and a value in quotation marks is the text between them",
        arguments: [
            ("user-agent = me # you", "me"), ("user-agent = \"me # you\" # they", "me # you"),
            ("user-agent = 'a \"b\"'", "a \"b\""), ("user-agent = a#b", "a#b"), ("user-agent = a 'b'", "a 'b'"),
            ("user-agent = a \"b\"", "a \"b\""), ("\u{FEFF}user-agent = me\r\n", "me"),
            ("password = 'a #b'", "a #b"), ("remote-time # = no", "true"),
        ])
    func values(line: String, value: String) throws {
        #expect(try ConfigurationFile(line, path: "c").edits.map(\.text) == [value])
    }

    @Test(
        "A value whose end is uncertain is refused with its line",
        arguments: ["user-agent = \"me", "user-agent = \"a\" b", "password = a #b", "proxy-user = a:b # c"])
    func uncertain(line: String) {
        let problem = #expect(throws: ConfigurationFile.Problem.self) { try ConfigurationFile("\n" + line, path: "c") }
        #expect(problem?.message.contains("c, line 2: ") == true && problem?.message.contains("quotation mark") == true)
    }

    @Test("The command of a hook is the shell's text, with its quotation marks and comments")
    func hook() throws {
        let file = try ConfigurationFile("on-complete = \"/my hook\" a # b\n[host a.org] # c\n", path: "c")
        #expect(file.settings.flatMap(\.arguments) == ["--on-complete=\"/my hook\" a # b"])
        #expect(file.sections.count == 1)
    }

    @Test(
        "It applies unless the command line overrides it or has --no-config, and its errors are reported")
    func run() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let file = command.path("segdl/config")
                try FileManager.default.createDirectory(
                    atPath: command.path("segdl"), withIntermediateDirectories: true)
                let write = { (text: String) in try Data(text.utf8).write(to: URL(fileURLWithPath: file)) }
                let home = ["XDG_CONFIG_HOME": command.directory]
                let url = origin.url("/1k/f.bin")
                try write("dir = from-file\nuser-agent = file/1\nquiet\n")
                #expect(
                    try await command.run([url], environment: home).status == 0 && command.exists("from-file/f.bin"))
                #expect(
                    try await command.run(["-d", "said", url], environment: home).status == 0
                        && command.exists("said/f.bin"))
                #expect(
                    try await command.run(["--no-config", url], environment: home).status == 0
                        && command.exists("f.bin"))
                let agents = origin.log.snapshot().requests.map { request in
                    request.headers.first { $0.name.lowercased() == "user-agent" }?.value ?? ""
                }
                #expect(agents.map { $0.hasPrefix("file/1") } == [true, true, false])
                #expect(try await command.run(["resume", "--all"], environment: home).status == 0)
                #expect(try await command.run(["status"], environment: home).status == 0)
                try write("no-such-option = 1\n")
                let unknown = try await command.run([url], environment: home)
                #expect(unknown.status == 2 && unknown.errors.contains("no-such-option"), "\(unknown)")
                try write("x\n")
                let malformed = try await command.run([url], environment: home)
                #expect(malformed.status == 2 && malformed.errors.contains("line 1"), "\(malformed)")
            }
        }
    }
}
