import Foundation
import Testing

@testable import segdl

/// Commands from the manuals of curl, wget, axel and aria2 with only the program's name changed.
@Suite("Habits", .enabled(if: Nginx.path != nil, "nginx is not installed"))
struct CompatibilityOptionTests {
    /// The expected result: a file, success without a file, or text in the error.
    enum Outcome: Hashable, Sendable {
        case file(String)
        case succeeds
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
        ("-r 0-99 -o name.bin URL", .file("name.bin")), ("-I URL", .says("segdl probe")),
        ("--retry 3 --retry-delay 2 --retry-max-time 60 -o name.bin URL", .file("name.bin")),
        ("--retry 3 --retry-all-errors --retry-connrefused -o name.bin URL", .file("name.bin")),
        ("--limit-rate 100M -o name.bin URL", .file("name.bin")), ("-R -o name.bin URL", .file("name.bin")),
        ("-A agent/1.0 -e http://referer.example/ -o name.bin URL", .file("name.bin")),
        ("-H X-First-Name:Joe -u user:password -o name.bin URL", .file("name.bin")),
        ("-b name=value -o name.bin URL", .file("name.bin")), ("-bname=value -o name.bin URL", .file("name.bin")),
        ("-z yesterday -o name.bin URL", .says("--if-exists newer")),
        ("--compressed -o name.bin URL", .says("coding")),
        ("-m 60 --connect-timeout 5 -o name.bin URL", .file("name.bin")),
        ("--create-dirs -o new/name.bin URL", .file("new/name.bin")),
        ("--output-dir new -o name.bin URL", .file("new/name.bin")),
        ("--remote-name-all URL", .file("file.bin")), ("--silent URL", .file("file.bin")),
        ("-Z --parallel-max 4 BASE/file.bin BASE/other.bin", .file("other.bin")),
        ("-o #1.bin BASE/{file,other}.bin", .file("other.bin")), ("-g -o name.bin URL", .file("name.bin")),
        ("-4 -o name.bin URL", .file("name.bin")), ("--proto =https -o name.bin URL", .says("--proto")),
        ("--noproxy * -x http://127.0.0.1:1 -o name.bin URL", .file("name.bin")),
        ("-X POST -o name.bin URL", .says("GET only")),
        ("-T file.bin URL", .says("--stall-timeout")), ("-n -o name.bin URL", .file("name.bin")),
        ("-w %{speed_download} -o name.bin URL", .says("--json")),
        ("--socks5 127.0.0.1:1 --noproxy * -o name.bin URL", .file("name.bin")),
        ("-s URL -o name.bin", .file("name.bin")), ("-s -o name.bin URL", .file("name.bin")),
        ("-sS -o name.bin URL", .file("name.bin")), ("--url URL -o name.bin", .file("name.bin")),
        ("--range 0-4 -o name.bin URL", .file("name.bin")), ("--range 0- -o name.bin URL", .file("name.bin")),
        ("-r 0-1,3-4 -o name.bin URL", .says("A-B")), ("-o /dev/null URL", .succeeds),
        ("-s -o /dev/null URL", .succeeds), ("-o - URL", .succeeds), ("-o /dev/stdout URL", .succeeds),
        ("--noproxy * -x 127.0.0.1:1 -o name.bin URL", .file("name.bin")),
        ("-z name.bin -o name.bin URL", .file("name.bin")), ("-d a=b URL", .says("only fetches")),
        ("-d @data URL", .says("only fetches")), ("-c jar -o name.bin URL", .says("cookies")),
        ("--tcp-nodelay --basic -u user:password -o name.bin URL", .file("name.bin")),
        ("--digest -u user:password -o name.bin URL", .file("name.bin")),
        ("--anyauth -u user:password -o name.bin URL", .file("name.bin")),
        ("--fail-with-body -o name.bin URL", .says("page of an error")),
        ("-K config -o name.bin URL", .says(".config/segdl/config")), ("-G -o name.bin URL", .says("GET only")),
        ("--data-raw x -o name.bin URL", .says("GET only")), ("--trace-ascii log URL", .says("Write -v")),
        ("--max-redirs 3 --max-filesize 1M -o name.bin URL", .file("name.bin")),
        ("-Y 1 -y 30 -o name.bin URL", .file("name.bin")), ("--interface lo -o name.bin URL", .file("name.bin")),
        ("--cert-type PEM -o name.bin URL", .file("name.bin")), ("--cert-type DER URL", .says("PEM")),
        ("--aws-sigv4 aws:amz URL", .says("presigned")), ("--http3 URL", .says("HTTP/1.1")),
        ("-o name.bin localhost:8080/x", .says("has no scheme")), ("-o name.bin example.org/x", .says("has no scheme")),
        // wget
        ("--no-cache URL", .file("file.bin")), ("--unlink -nH URL", .file("file.bin")),
        ("--secure-protocol=auto URL", .file("file.bin")), ("--start-pos=0 URL", .file("file.bin")),
        ("--debug URL", .file("file.bin")), ("-d URL", .says("-v")), ("-x URL", .says("--name-template")),
        ("-m URL", .says("does not follow links")), ("--wait=2 URL", .says("-j 1")),
        ("--quota=1m URL", .says("--max-filesize")),
        ("-e robots=off URL", .says(".wgetrc")), ("--progress=dot:giga URL", .file("file.bin")),
        ("--progress=bar:force URL", .file("file.bin")), ("--no-proxy URL", .file("file.bin")),
        ("--waitretry=1 --retry-connrefused URL", .file("file.bin")),
        ("--connect-timeout=5 --read-timeout=20 --dns-timeout=5 URL", .file("file.bin")),
        ("-4 URL", .file("file.bin")), ("--inet4-only URL", .file("file.bin")),
        ("--bind-address=127.0.0.1 URL", .file("file.bin")), ("-U agent URL", .says("--user-agent")),
        ("--user-agent=agent URL", .file("file.bin")), ("-o log URL", .file("log")),
        ("--post-data=x URL", .says("GET only")), ("--save-cookies jar URL", .says("cookies")),
        ("--recursive URL", .says("does not follow links")), ("--level=1 URL", .says("does not follow links")),
        ("--cut-dirs=1 URL", .says("-d DIR")), ("--restrict-file-names=windows URL", .says("-o FILE")),
        ("-S URL", .file("file.bin")), ("-q --show-progress URL", .file("file.bin")),
        ("-t inf URL", .says("without end")),
        ("--use-server-timestamps URL", .file("file.bin")), ("--max-threads=5 URL", .file("file.bin")),
        ("--chunk-size=1M URL", .file("file.bin")), ("--force-progress URL", .file("file.bin")),
        ("--output-file=log URL", .says("2>FILE")), ("-w 2 URL", .says("--json")),
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
        ("--spider URL", .says("segdl probe")), ("-r -np BASE/", .says("does not follow links")),
        ("-r URL", .says("does not follow links")),
        ("--content-disposition URL", .file("file.bin")),
        ("--no-check-certificate URL", .file("file.bin")), ("--user=user --password=secret URL", .file("file.bin")),
        ("--http-user=user --http-password=secret URL", .file("file.bin")), ("-b URL", .says("--background")),
        ("--max-redirect=3 URL", .file("file.bin")), ("--limit-rate=20m URL", .file("file.bin")),
        ("--header=Accept-Language:en --referer=http://r.example/ URL", .file("file.bin")),
        ("-nd URL", .file("file.bin")),
        ("--input-metalink=file.meta4", .file("file.bin")), ("--metalink-over-http URL", .says("segdl probe")),
        // axel
        ("-n 8 URL", .file("file.bin")), ("--num-connections=8 URL", .file("file.bin")),
        ("-o new/ URL", .file("new/file.bin")),
        ("--max-speed=1000000 URL", .file("file.bin")), ("-a URL", .says("--progress bar")),
        ("--percentage URL", .file("file.bin")), ("--search=3 URL", .says("--mirror")),
        ("-s 1000000 URL", .says("-s <N|auto>")),
        ("-q -o name.bin URL", .file("name.bin")), ("-v URL", .file("file.bin")),
        ("-H X-First-Name:Joe URL", .file("file.bin")), ("-p URL", .says("--progress log")),
        // aria2
        ("--continue=true URL", .file("file.bin")), ("--continue=false URL", .file("file.bin")),
        ("-c -x2 URL", .file("file.bin")), ("--quiet=true URL", .file("file.bin")), ("--dry-run=true URL", .succeeds),
        ("--http-no-cache=true URL", .file("file.bin")), ("--summary-interval=0 URL", .file("file.bin")),
        ("--enable-color=false --console-log-level=warn URL", .file("file.bin")),
        ("--show-console-readout=false URL", .file("file.bin")), ("--async-dns=true URL", .file("file.bin")),
        ("--no-conf=true URL", .file("file.bin")), ("--gid=0123456789abcdef URL", .file("file.bin")),
        ("--parameterized-uri=true -o #1.bin BASE/{file,other}.bin", .file("other.bin")),
        ("--no-netrc=true URL", .file("file.bin")), ("--lowest-speed-limit=1K URL", .file("file.bin")),
        ("--bt-max-peers=5 URL", .says("BitTorrent")), ("--seed-ratio=1.0 URL", .says("BitTorrent")),
        ("--hash-check-only=true URL", .says("segdl verify")), ("--save-session=x URL", .says("segdl resume")),
        ("--daemon=true URL", .says("--background")), ("--server-stat-of=x URL", .says("--remember")),
        ("--no-proxy=localhost,127.0.0.1 URL", .file("file.bin")),
        ("--stream-piece-selector=inorder --uri-selector=adaptive URL", .file("file.bin")),
        ("--piece-length=1M URL", .file("file.bin")), ("--use-head=false URL", .file("file.bin")),
        ("--dir=new --out=name.bin URL", .file("new/name.bin")), ("--log=file URL", .says("--json")),
        ("--force-sequential=true BASE/file.bin BASE/other.bin", .file("other.bin")),
        ("--auto-file-renaming=false URL", .file("file.bin")), ("--remote-time=true URL", .file("file.bin")),
        ("--max-connection-per-server=4 URL", .file("file.bin")), ("--follow-torrent=false URL", .file("file.bin")),
        ("--conf-path=x URL", .says("--no-config")), ("--pause=true URL", .says("--paused")),
        ("--http-proxy=http://127.0.0.1:1 URL", .says("--proxy")), ("--disk-cache=64M URL", .says("kernel")),
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
        ("--checksum=sha-1=HASH URL", .file("file.bin")), ("-V URL", .says("--checksum ALGO=HEX for aria2")),
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
                let netrc = Data("machine 127.0.0.2 login user password secret\n".utf8)
                _ = FileManager.default.createFile(
                    atPath: command.path(".netrc"), contents: netrc, attributes: [.posixPermissions: 0o600])
                let result = try await command.run(arguments, environment: ["HOME": command.directory])
                switch outcome {
                case .file(let path):
                    #expect(result.status == 0, "\(line): \(result)")
                    #expect(FileManager.default.contents(atPath: command.path(path)) == Data(content), "\(line)")
                case .succeeds:
                    let names = try command.names
                    #expect(result.status == 0 && names == ["file.meta4", "jar", "list"], "\(line): \(result)")
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
            // What follows -s decides whose it is.
            for name in Set(names) where name != "-s" {
                #expect(try CompatibilityOptions.understood([name]) == [name], "\(name)")
            }
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
