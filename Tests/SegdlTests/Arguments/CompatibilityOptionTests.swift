import Foundation
import Testing

@testable import segdl

/// Commands from the manuals of curl, wget, axel and aria2 with only the program's name changed.
@Suite("Habits", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct CompatibilityOptionTests {
    /// The expected result: a file, or text in the error.
    enum Outcome: Hashable, Sendable {
        case file(String)
        case says(String)
    }

    static let commands: [(String, Outcome)] = [
        // curl
        ("-o name.bin URL", .file("name.bin")), ("-L -o name.bin URL", .file("name.bin")),
        ("-fsSL URL -o name.bin", .file("name.bin")), ("-sSfL -o name.bin URL", .file("name.bin")),
        ("-LJ URL", .file("file.bin")), ("-# -o name.bin URL", .file("name.bin")),
        ("-L# -o name.bin URL", .file("name.bin")), ("-O URL", .file("file.bin")),
        ("-LO URL", .file("file.bin")), ("-fsSLO URL", .file("file.bin")), ("URL -O", .file("file.bin")),
        ("-sOL URL", .file("file.bin")), ("-O example.org/file", .says("could be both")),
        ("-o a.bin URL -o b.bin BASE/other.bin", .file("b.bin")),
        ("-o a.bin URL -o b.bin BASE/other.bin", .file("a.bin")),
        ("-o a.bin -o b.bin URL", .says("2 -o and 1 URLs")), ("-C - -o name.bin URL", .file("name.bin")),
        ("-C 1000 -o name.bin URL", .says("-C -")), ("-k -o name.bin URL", .says("--insecure")),
        ("-r 0-99 -o name.bin URL", .says("Parts of files")), ("-I URL", .says("segdl probe")),
        ("--retry 3 --retry-delay 2 --retry-max-time 60 -o name.bin URL", .file("name.bin")),
        ("--retry 3 --retry-all-errors --retry-connrefused -o name.bin URL", .file("name.bin")),
        ("--limit-rate 100M -o name.bin URL", .file("name.bin")), ("-R -o name.bin URL", .file("name.bin")),
        ("-A agent/1.0 -e http://referer.example/ -o name.bin URL", .file("name.bin")),
        ("-H X-First-Name:Joe -u user:password -o name.bin URL", .file("name.bin")),
        ("-b name=value -o name.bin URL", .file("name.bin")), ("-bname=value -o name.bin URL", .file("name.bin")),
        ("-z yesterday -o name.bin URL", .says("--if-exists update")),
        ("--compressed -o name.bin URL", .says("coding")),
        ("-m 60 --connect-timeout 5 -o name.bin URL", .file("name.bin")),
        ("--create-dirs -o new/name.bin URL", .file("new/name.bin")),
        ("--output-dir new -o name.bin URL", .file("new/name.bin")),
        ("--remote-name-all URL", .file("file.bin")), ("--silent URL", .file("file.bin")),
        ("-Z --parallel-max 4 BASE/file.bin BASE/other.bin", .file("other.bin")),
        ("-o #1.bin BASE/{file,other}.bin", .file("other.bin")), ("-g -o name.bin URL", .file("name.bin")),
        ("-4 -o name.bin URL", .file("name.bin")), ("--proto =https -o name.bin URL", .says("--proto")),
        ("--noproxy * -x http://127.0.0.1:1 -o name.bin URL", .says("-x")),
        ("-X POST -o name.bin URL", .says("GET only")),
        ("-T file.bin URL", .says("--stall-timeout")), ("-n -o name.bin URL", .says("--netrc")),
        ("-w %{speed_download} -o name.bin URL", .says("--json")),
        ("--socks5 127.0.0.1:1 --noproxy * -o name.bin URL", .file("name.bin")),
        // wget
        ("URL", .file("file.bin")), ("-c URL", .file("file.bin")), ("-nc URL", .file("file.bin")),
        ("--no-clobber URL", .file("file.bin")),
        ("-nv URL", .file("file.bin")), ("-q URL", .file("file.bin")), ("-O name.bin URL", .file("name.bin")),
        ("-qO name.bin URL", .file("name.bin")), ("-qOname.bin URL", .file("name.bin")),
        ("-Oname.bin URL", .file("name.bin")),
        ("--output-document=name.bin URL", .file("name.bin")), ("--directory-prefix=new URL", .file("new/file.bin")),
        ("-P new URL", .file("new/file.bin")), ("-t 5 URL", .file("file.bin")), ("-t 0 URL", .says("without end")),
        ("--tries=5 URL", .file("file.bin")),
        ("-T 10 URL", .file("file.bin")), ("--timeout=10 URL", .file("file.bin")), ("-i list", .file("file.bin")),
        ("-N URL", .file("file.bin")), ("--timestamping URL", .file("file.bin")),
        ("--spider URL", .says("segdl probe")), ("-r -np BASE/", .says("wget's -r")),
        ("--content-disposition URL", .file("file.bin")),
        ("--no-check-certificate URL", .file("file.bin")), ("--user=user --password=secret URL", .file("file.bin")),
        ("--http-user=user --http-password=secret URL", .file("file.bin")), ("-b URL", .says("nothing to fetch")),
        ("--max-redirect=3 URL", .file("file.bin")), ("--limit-rate=20m URL", .file("file.bin")),
        ("--header=Accept-Language:en --referer=http://r.example/ URL", .file("file.bin")),
        ("-nd URL", .file("file.bin")),
        ("--input-metalink=file.meta4", .file("file.bin")), ("--metalink-over-http URL", .says("segdl probe")),
        // axel
        ("-n 8 URL", .says("-s N")), ("--num-connections=8 URL", .file("file.bin")),
        ("-o new/ URL", .file("new/file.bin")),
        ("--max-speed=1000000 URL", .file("file.bin")), ("-a URL", .says("--progress bar")),
        ("--percentage URL", .file("file.bin")), ("--search=3 URL", .says("--mirror")),
        ("-s 1000000 URL", .says("-s <N|auto>")),
        // aria2
        ("-x2 URL", .file("file.bin")), ("-s2 URL", .file("file.bin")), ("-x 4 -s 4 -k 1M URL", .file("file.bin")),
        ("-x16 -s16 -k1M URL", .file("file.bin")),
        ("--min-split-size=1M --split=4 URL", .file("file.bin")), ("-d new -o name.bin URL", .file("new/name.bin")),
        ("-j2 -i list", .file("file.bin")), ("--max-tries=3 URL", .file("file.bin")),
        ("--retry-wait=1 URL", .file("file.bin")),
        ("--max-overall-download-limit=100M URL", .file("file.bin")),
        ("--max-download-limit=100M URL", .file("file.bin")),
        ("--file-allocation=none URL", .file("file.bin")), ("--allow-overwrite=true URL", .file("file.bin")),
        ("--allow-overwrite=maybe URL", .says("false, true")),
        ("--auto-file-renaming=true URL", .file("file.bin")), ("--check-certificate=false URL", .file("file.bin")),
        ("--disable-ipv6=true URL", .file("file.bin")), ("--timeout=60 URL", .file("file.bin")),
        ("--conditional-get=true URL", .file("file.bin")),
        ("--all-proxy=http://127.0.0.1:1 --noproxy=* URL", .file("file.bin")),
        ("--checksum=sha-1=HASH URL", .file("file.bin")), ("-V URL", .says("--checksum")),
        ("--on-download-complete=x URL", .says("--on-complete")),
        ("--metalink-file=file.meta4", .file("file.bin")), ("file.meta4", .file("file.bin")),
        ("-M file.meta4", .file("file.bin")), ("--follow-metalink=mem URL", .says("-i URL")),
        ("-T file.torrent", .says("stall-timeout")), ("--enable-rpc", .says("RPC")),
        ("--load-cookies=jar URL", .file("file.bin")),
    ]

    @Test("A command from another program's manual works, or the error states the equivalent", arguments: Self.commands)
    func command(line: String, outcome: Outcome) async throws {
        try await Nginx.run { nginx in
            let content: [UInt8] = Array("segdl".utf8)
            for name in ["file.bin", "other.bin"] { try nginx.serve(content, as: name) }
            try await withCommand { command in
                let base = nginx.url("").dropLast()
                try Data("\(nginx.url())\n".utf8).write(to: URL(fileURLWithPath: command.path("list")))
                let metalink = MetalinkCommandTests.metalink("file.bin", urls: nginx.url())
                try Data(metalink.utf8).write(to: URL(fileURLWithPath: command.path("file.meta4")))
                try Data().write(to: URL(fileURLWithPath: command.path("jar")))
                let arguments = line.split(separator: " ").map { word in
                    word.replacingOccurrences(of: "URL", with: nginx.url()).replacingOccurrences(of: "BASE", with: base)
                        .replacingOccurrences(of: "HASH", with: Self.hash)
                }
                let result = try await command.run(arguments)
                switch outcome {
                case .file(let path):
                    #expect(result.status == 0, "\(line): \(result)")
                    #expect(FileManager.default.contents(atPath: command.path(path)) == Data(content), "\(line)")
                case .says(let text):
                    #expect(result.status == 2 || result.status == 11, "\(line): \(result)")
                    #expect(result.errors.contains(text), "\(line): \(result)")
                }
            }
        }
    }

    /// The SHA-1 of the text `segdl`, computed by sha1sum.
    private static let hash = "60a4cc01f1197a8eaa10dd31ceb3ca7852042729"

    @Test("No option of segdl is refused as an option of another program")
    func ours() async throws {
        try await withCommand { command in
            let dump = try await command.run("--experimental-dump-help").output
            let names = dump.matches(of: #/"kind" : "(?<kind>long|short)",\s*"name" : "(?<name>[^"]+)"/#)
                .map { ($0.output.kind == "long" ? "--" : "-") + $0.output.name }
            #expect(names.count > 100)
            for name in Set(names) { #expect(try CompatibilityOptions.understood([name]) == [name], "\(name)") }
        }
    }

    @Test("segdl's letters are not read as curl's, and arguments after -- are left alone")
    func own() throws {
        #expect(
            try CompatibilityOptions.understood(["-s", "4", "-sauto", "--", "-k"]) == ["-s", "4", "-sauto", "--", "-k"])
        #expect(try CompatibilityOptions.understood(["-fsSL", "-RL"]) == ["--quiet", "--remote-time"])
        #expect(throws: CompatibilityOptions.Refusal.self) { try CompatibilityOptions.understood(["-fkL"]) }
    }
}
