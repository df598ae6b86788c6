import Foundation
import Origin
import Testing

@testable import segdl

/// segdl under the names of other programs.
@Suite("In place of other programs")
struct ProgramTests {
    /// The expected result: files with their content's seed, standard output, or text in the error.
    enum Outcome: Hashable, Sendable {
        case file(String)
        case output
        case says(String)
    }

    static let commands: [(String, Outcome)] = [
        // curl
        ("curl URL", .output), ("curl -fsSL URL", .output), ("curl -o - URL", .output),
        ("curl -fsSL URL -o name", .file("name")), ("curl -sSfLo name URL", .file("name")),
        ("curl -O URL", .file("file%20a.bin")), ("curl -LO URL?seed=1", .file("file%20a.bin")),
        ("curl -o one URL -O BASE/other.bin", .file("one")), ("curl -o one URL -O BASE/other.bin", .file("other.bin")),
        ("curl --remote-name-all BASE/one.bin BASE/other.bin", .file("other.bin")),
        ("curl -OJ BASE/x?disposition=attachment;filename=given.bin", .file("given.bin")),
        ("curl -C - -OJ URL", .says("combined with -C")),
        ("curl --url URL --output name", .file("name")),
        ("curl --output-dir new --create-dirs -O URL", .file("new/file%20a.bin")),
        ("curl -C - -o name URL", .file("name")), ("curl -C 10 -o name URL", .says("-C - has")),
        ("curl -k --compressed --retry 3 --http2 -o name URL", .file("name")),
        ("curl -X GET -o name URL", .file("name")), ("curl -X POST -o name URL", .says("-X")),
        ("curl -o name MOVED", .says("redirected more than 0")), ("curl -Lo name MOVED", .file("name")),
        ("curl -d x URL", .says("curl's -d")), ("curl -I URL", .says("segdl probe")), ("curl -w x URL", .says("-w")),
        ("curl --output=name URL", .says("--output=name")), ("curl -o", .says("needs a value")),
        ("curl", .says("no URL")),
        ("curl -O BASE/", .says("no file name")), ("curl --frobnicate URL", .says("curl's --frobnicate")),
        ("curl -o name file:///etc/passwd", .says("file://")), ("curl -o a -o b URL", .says("more of it than URLs")),
        ("curl -o name -- URL", .file("name")), ("curl -o #1.bin BASE/{one,other}.bin", .file("other.bin")),
        // wget
        ("wget URL", .file("file a.bin")), ("wget -q URL", .file("file a.bin")),
        ("wget URL?seed=1", .file("file a.bin?seed=1")), ("wget BASE/?seed=1", .file("index.html?seed=1")),
        ("wget -O name URL", .file("name")), ("wget -qO- URL", .output), ("wget -qO name URL", .file("name")),
        ("wget -O name -P new URL", .file("name")), ("wget -P new URL", .file("new/file a.bin")),
        ("wget -c URL", .file("file a.bin")), ("wget --output-document=name URL", .file("name")),
        ("wget --content-disposition BASE/x?disposition=attachment;filename=given.bin", .file("given.bin")),
        ("wget -i list", .file("other.bin")), ("wget -nv -nc -t 0 --timeout=10 URL", .file("file a.bin")),
        ("wget MOVED", .says("name")), ("wget -r URL", .says("--list-from")),
        ("wget --spider URL", .says("segdl probe")),
        ("wget -A x URL", .says("wget's -A")), ("wget -o log URL", .says("standard error")),
        ("wget -e robots=off URL", .file("file a.bin")), ("wget -e x=y URL", .says("x=y")),
        ("wget --no-check-certificate --no-cache URL", .file("file a.bin")),
        ("wget --post-data=x URL", .says("GET only")),
        ("wget -O name URL URL", .says("one URL")), ("wget --trust-server-names URL", .says("-O")),
        // aria2
        ("aria2c -o name URL", .file("name")), ("aria2c -d new -o name URL", .file("new/name")),
        ("aria2c -x16 -s4 -k1M -j2 -o name URL BASE/file%20a.bin", .file("name")),
        ("aria2c -Z BASE/one.bin BASE/other.bin", .file("other.bin")), ("aria2c -i aria", .file("name")),
        ("aria2c -c --no-conf --summary-interval=0 --file-allocation=none -o name URL", .file("name")),
        ("aria2c --allow-overwrite=maybe URL", .says("true and false")), ("aria2c a.torrent", .says("BitTorrent")),
        ("aria2c --seed-time=0 --bt-stop-timeout=60 --follow-torrent=false -o name URL", .file("name")),
        ("aria2c --enable-rpc=false --daemon=false --conf-path=/dev/null -o name URL", .file("name")),
        ("aria2c --all-proxy= --save-session= --log= --header= -o name URL", .file("name")),
        ("aria2c --enable-rpc URL", .says("segdl daemon")), ("aria2c --enable-rpc=true URL", .says("segdl daemon")),
        ("aria2c --conf-path=/x URL", .says("--conf-path")), ("aria2c --torrent-file=x URL", .says("BitTorrent")),
        ("curl --disable-epsv -o name URL", .file("name")),
        ("aria2c --conditional-get=true -o name URL", .says("--allow-overwrite")),
        ("aria2c --checksum=sha-256=HASH -o name URL", .file("name")),
        ("aria2c --on-download-complete=x URL", .says("--on-complete")), ("aria2c -V URL", .says("segdl verify")),
    ]

    @Test(
        "A time-out of a program applies to the first byte too",
        arguments: [
            ("wget -T 300 URL", ["--stall-timeout", "--head-timeout", "--connect-timeout"]),
            ("wget --timeout=300 URL", ["--stall-timeout", "--head-timeout", "--connect-timeout"]),
            ("wget --read-timeout=300 URL", ["--stall-timeout", "--head-timeout"]),
            ("aria2c -t 300 URL", ["--stall-timeout", "--head-timeout"]),
            ("aria2c --timeout=300 URL", ["--stall-timeout", "--head-timeout"]),
        ])
    func patience(line: String, options: [String]) throws {
        let words = line.replacing("URL", with: "http://example.org/f.bin").split(separator: " ").map(String.init)
        let arguments = try #require(Program.named(words[0])).translated(Array(words.dropFirst()))
        #expect(arguments.filter { $0.contains("-timeout=") } == options.map { "\($0)=300" })
    }

    @Test(
        "A program's option to decode is no license to store encoded bytes: the file is refused",
        arguments: [
            ("curl --compressed -o name ENCODED", 7), ("curl -sSfL --compressed -o name ENCODED", 7),
            ("wget --compression=auto -O name ENCODED", 7), ("wget --compression=gzip -O name ENCODED", 7),
            ("aria2c --http-accept-gzip=true -o name ENCODED", 7), ("aria2c --http-accept-gzip -o name ENCODED", 7),
            ("curl -o name ENCODED", 0), ("wget --compression=none -O name ENCODED", 0),
            ("aria2c --http-accept-gzip=false -o name ENCODED", 0), ("curl --compressed -o name URL", 0),
            ("wget --compression=auto -O name URL", 0), ("aria2c --http-accept-gzip=true -o name URL", 0),
        ])
    func encoded(line: String, status: Int32) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let line = line.replacing("ENCODED", with: "URL?encoding=gzip")
                let result = try await Self.run(line, in: command, origin)
                #expect(result.status == status, "\(line): \(result)")
                #expect(command.exists("name") == (status == 0))
                #expect(status == 0 || result.errors.contains("content coding gzip"), "\(result.errors)")
            }
        }
    }

    private static func run(
        _ line: String, in command: Segdl, _ origin: Origin, environment: [String: String] = [:]
    ) async throws -> Segdl.Outcome {
        let words = line.split(separator: " ").map { word -> String in
            String(word).replacing("URL", with: origin.url("/64K/file%20a.bin"))
                .replacing("BASE", with: origin.url("/64K"))
                .replacing("MOVED", with: origin.url("/64K/moved.bin?redirect=302:\(origin.url("/64K/target.bin"))"))
                .replacing("HASH", with: "1ebd584fa2a31942b2dfbbda3f53aa00f0e7abe48e88e96c200f0d57845e61a7")
        }
        return try await command.run(
            Array(words.dropFirst()), shell: #"ln -sf "$0" \#(words[0]) && ./\#(words[0]) "$@""#,
            environment: environment)
    }

    @Test(
        "A command line of another program does the same, or is refused with the option's name",
        arguments: Self.commands)
    func command(line: String, outcome: Outcome) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                try command.write(origin.url("/64K/one.bin") + "\n\n" + origin.url("/64K/other.bin") + "\n", to: "list")
                try command.write(origin.url("/64K/one.bin") + "\n out=name\n", to: "aria")
                let result = try await Self.run(line, in: command, origin)
                let content = OriginContent(seed: 1)
                switch outcome {
                case .file(let name):
                    #expect(result.status == 0, "\(line): \(result)")
                    #expect(content.firstMismatch(inFileAt: command.path(name), length: 65536) == nil, "\(line)")
                case .output:
                    #expect(result.status == 0, "\(line): \(result.errors)")
                    #expect(
                        Array(result.output.utf8)
                            == Array(String(decoding: content.bytes(0..<65536), as: UTF8.self).utf8))
                case .says(let text):
                    #expect([2, 8].contains(result.status) && result.errors.contains(text), "\(line): \(result)")
                    #expect(!command.exists("name") && !command.exists("file a.bin"))
                }
            }
        }
    }

    @Test(
        "An existing file is treated as by the program",
        arguments: [
            ("curl -o name URL", "name", "new"), ("curl -C - -o name URL", "name", "refused"),
            ("wget -O name URL", "name", "new"), ("wget URL", "file a.bin", "numbered"),
            ("wget -nc URL", "file a.bin", "kept"), ("wget -c URL", "file a.bin", "refused"),
            ("wget -N URL", "file a.bin", "new"), ("aria2c -o name URL", "name", "numbered"),
            ("aria2c --allow-overwrite=true -o name URL", "name", "new"), ("aria2c -c -o name URL", "name", "refused"),
            ("aria2c --auto-file-renaming=false -o name URL", "name", "refused"),
            ("aria2c --allow-overwrite=true --conditional-get=true -o name URL", "name", "kept"),
            ("curl -OJ BASE/x?disposition=attachment;filename=given.bin", "given.bin", "refused"),
            ("curl --remote-name-all -J BASE/x?disposition=attachment;filename=given.bin", "given.bin", "refused"),
            ("curl -J -o name URL", "name", "new"),
        ])
    func existing(line: String, name: String, result: String) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                try command.write("old", to: name)
                let outcome = try await Self.run(line, in: command, origin)
                let isNew = OriginContent(seed: 1).firstMismatch(inFileAt: command.path(name), length: 65536) == nil
                #expect(outcome.status == (result == "refused" ? 12 : 0), "\(outcome)")
                #expect(isNew == (result == "new"), "\(outcome)")
                let names = try FileManager.default.contentsOfDirectory(atPath: command.directory)
                    .filter { $0.hasPrefix(name.prefix(4)) }
                #expect(names.count == (result == "numbered" ? 2 : 1), "\(names)")
            }
        }
    }

    @Test(
        "A symbolic link stays, and the file that it leads to is written, as by the program",
        arguments: [
            ("curl -o name URL", "target"), ("curl -O URL", "target"), ("curl --no-clobber -o name URL", "name.1"),
            ("wget -O name URL", "target"), ("wget URL", "file a.bin.1"), ("wget -N URL", "target"),
            ("aria2c --allow-overwrite=true -o name URL", "target"), ("aria2c -o name URL", "name.1"),
            ("aria2c --allow-overwrite=true URL", "target"),
        ], [true, false])
    func link(_ line: (words: String, written: String), isDangling: Bool) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let names = ["name", "file a.bin", "file%20a.bin"]
                let manager = FileManager.default
                try manager.createDirectory(atPath: command.path("sub"), withIntermediateDirectories: true)
                if !isDangling { try command.write("old", to: "sub/target") }
                // A relative link, to another link.
                try manager.createSymbolicLink(atPath: command.path("sub/second"), withDestinationPath: "target")
                for name in names {
                    try manager.createSymbolicLink(atPath: command.path(name), withDestinationPath: "sub/second")
                }
                let outcome = try await Self.run(line.words, in: command, origin)
                #expect(outcome.status == 0, "\(outcome)")
                // Only curl numbers a file beside a link that leads nowhere.
                let isNumbered = line.written != "target" && (!isDangling || line.words.hasPrefix("curl"))
                for name in names + ["sub/second"] {
                    #expect((try? manager.destinationOfSymbolicLink(atPath: command.path(name))) != nil, "\(name)")
                }
                let written = isNumbered ? line.written : "sub/target"
                let found = try manager.contentsOfDirectory(atPath: command.directory)
                let isThere =
                    OriginContent(seed: 1).firstMismatch(inFileAt: command.path(written), length: 65536) == nil
                #expect(isThere || isNumbered && found.contains { $0.contains(".1") }, "\(found)")
                if isNumbered, !isDangling {
                    #expect(command.bytes("sub/target") == Data("old".utf8))
                }
            }
        }
    }

    @Test("A link that leads in a circle, or to a directory, is refused")
    func unusableLinks() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let manager = FileManager.default
                try manager.createSymbolicLink(atPath: command.path("circle"), withDestinationPath: "circle")
                try manager.createSymbolicLink(atPath: command.path("dir"), withDestinationPath: "./")
                for (name, status) in [("circle", Int32(2)), ("dir", 12)] {
                    let outcome = try await Self.run("curl -o \(name) URL", in: command, origin)
                    #expect(outcome.status == status, "\(outcome)")
                    #expect((try? manager.destinationOfSymbolicLink(atPath: command.path(name))) != nil)
                }
            }
        }
    }

    @Test("The version, the netrc file that wget and aria2 read, and segdl's own configuration, which they do not")
    func environment() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                for line in ["curl -V", "curl --version", "wget --version", "aria2c -v"] {
                    let outcome = try await Self.run(line, in: command, origin)
                    #expect(outcome.status == 0 && outcome.output.hasPrefix("segdl "), "\(outcome)")
                }
                try command.write("machine 127.0.0.1 login me password secret\n", to: ".netrc", mode: 0o600)
                try FileManager.default.createDirectory(
                    atPath: command.path("config/segdl"), withIntermediateDirectories: true)
                try command.write("dir = elsewhere\n", to: "config/segdl/config")
                let environment = ["HOME": command.directory, "XDG_CONFIG_HOME": command.path("config")]
                let closed = "BASE/x?auth=me:secret"
                for (line, status) in [
                    ("wget -O a \(closed)", Int32(0)), ("aria2c -o b \(closed)", 0),
                    ("wget --no-netrc -O c \(closed)", 6),
                    ("curl -o d \(closed)", 6), ("curl -n -o e \(closed)", 0),
                ] {
                    let outcome = try await Self.run(line, in: command, origin, environment: environment)
                    #expect(outcome.status == status, "\(line): \(outcome)")
                }
                #expect(
                    command.exists("a") && command.exists("b") && command.exists("e") && !command.exists("elsewhere"))
                // A file that others can read, with a word that is no netrc's at its end.
                try command.write("machine 127.0.0.1 login me password secret\nx\n", to: ".netrc", mode: 0o664)
                for (line, status) in [
                    ("wget -O f \(closed)", Int32(0)), ("curl -n -o g \(closed)", 0),
                    ("aria2c -o h \(closed)", 6), ("aria2c -o i BASE/x", 0), ("wget -O j BASE/x", 0),
                    ("curl --netrc-file .netrc -o k \(closed)", 0),
                    ("aria2c --netrc-path=.netrc -o l \(closed)", 6),
                ] {
                    let outcome = try await Self.run(line, in: command, origin, environment: environment)
                    #expect(outcome.status == status, "\(line): \(outcome)")
                }
                try FileManager.default.removeItem(atPath: command.path(".netrc"))
                let missing = try await Self.run("curl -n -o m BASE/x", in: command, origin, environment: environment)
                #expect(missing.status == 0, "\(missing)")
            }
        }
    }

    @Test("CURL_CA_BUNDLE names the authorities for curl only, unless an option does")
    func authorities() throws {
        let environment = ["CURL_CA_BUNDLE": "/own.pem", "SSL_CERT_FILE": "/other.pem"]
        func hasBundle(_ program: Program, _ options: String..., in environment: [String: String]) throws -> Bool {
            try program.translated(options + ["https://a/b"], environment: environment).contains("--cacert=/own.pem")
        }
        #expect(try hasBundle(.curl, in: environment))
        #expect(try !hasBundle(.curl, in: ["CURL_CA_BUNDLE": ""]))
        #expect(try !hasBundle(.wget, in: environment))
        #expect(try !hasBundle(.curl, "-k", in: environment))
        #expect(try !hasBundle(.curl, "--cacert", "/third.pem", in: environment))
        #expect(try !hasBundle(.curl, "--capath", "/third", in: environment))
    }

    @Test("Every translation is in segdl's own spelling")
    func spelling() throws {
        for program in [Program.curl, .wget, .aria2c] {
            var line = ProgramLine()
            line.operands = ["http://a/b"]
            let arguments = try program.arguments(for: line)
            #expect(arguments.first == "get" && arguments.contains("--no-config"))
        }
        #expect(Program.named("/usr/bin/segdl") == nil && Program.named("") == nil)
    }
}
