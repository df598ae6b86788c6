/// Options of curl, wget, axel and aria2 that are none here: what is so anyway is passed over, and of the rest it is said what to write.
enum CompatibilityOptions {
    /// Why a command line cannot be read, and what to write.
    struct Refusal: Error, Hashable {
        let word: String
        let hint: String
    }

    private enum Meaning {
        /// It is so in any case.
        case given
        /// It is so in any case, with that value.
        case givenAs(String)
        /// It is written otherwise.
        case written(String)
    }

    /// The arguments without what goes without saying.
    static func understood(_ arguments: [String]) throws(Refusal) -> [String] {
        var understood: [String] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if argument == "--" { return understood + [argument] + rest }
            let equals = argument.hasPrefix("--") ? argument.firstIndex(of: "=") : nil
            let word = String(argument[..<(equals ?? argument.endIndex)])
            switch Self.meanings[word] {
            case .given?: continue
            case .givenAs(let value)?:
                let given = equals.map { String(argument[argument.index(after: $0)...]) } ?? rest.first
                guard given == value else {
                    throw Refusal(word: word, hint: "Only \(word) \(value) is understood")
                }
                if equals == nil { rest.removeFirst() }
            case .written(let hint)?: throw Refusal(word: word, hint: hint)
            case nil:
                understood += try Self.separated(argument) ?? [argument]
            }
        }
        return understood
    }

    /// Several of curl's letters in one word, such as `-fsSL`, as they are written here; absent if it is something else.
    private static func separated(_ argument: String) throws(Refusal) -> [String]? {
        let letters = argument.dropFirst()
        guard argument.hasPrefix("-"), letters.count > 1, letters.allSatisfy({ "fLOSJsR#k".contains($0) }),
            letters.contains(where: { "fLOSJ#".contains($0) })
        else { return nil }
        for letter in ["O", "k"] where letters.contains(letter) {
            guard case .written(let hint)? = Self.meanings["-\(letter)"] else { continue }
            throw Refusal(word: argument, hint: hint)
        }
        return [("s", "--quiet"), ("R", "--remote-time"), ("#", "--progress=bar")]
            .filter { letters.contains($0.0) }.map(\.1)
    }

    private static let recursion = "Links of pages are not followed: name the files, in a list with -i"
    private static let body = "Files are fetched with GET only"
    private static let torrent = "BitTorrent is not spoken"

    private static let meanings: [String: Meaning] = [
        // curl
        "-L": .given, "--location": .given, "-f": .given, "--fail": .given, "--fail-early": .given,
        "-S": .given, "--show-error": .given, "-J": .given, "--remote-header-name": .given, "-Z": .given,
        "--parallel": .given, "--retry-all-errors": .given, "--retry-connrefused": .given,
        "--tlsv1.2": .given, "--http1.1": .given, "--globon": .given, "-N": .given, "--no-buffer": .given,
        "--remove-on-error": .written("What was fetched of a file that fails is kept, to go on with"),
        "-C": .givenAs("-"), "--continue-at": .givenAs("-"),
        "-O": .written(
            "-O names the output to wget and keeps the remote name to curl. Write -o FILE for the former; the latter is the default"
        ),
        "--remote-name": .written("Files keep their remote names in any case: leave it out"),
        "--remote-name-all": .written("Files keep their remote names in any case: leave it out"),
        "-k": .written("-k means --insecure to curl and --convert-links to wget. Write --insecure for the former"),
        "-U": .written("-U is curl's --proxy-user and wget's --user-agent: write the long name"),
        "-E": .written("Write --cert FILE for curl's -E"),
        "-#": .written("Write --progress bar"), "--progress-bar": .written("Write --progress bar"),
        "--no-progress-meter": .written("Write --progress none"), "--silent": .written("Write -q"),
        "--output-dir": .written("Write -d DIR"), "-I": .written("Write segdl probe URL"),
        "--head": .written("Write segdl probe URL"),
        "-r": .written("Parts of files are not fetched, and wget's -r is not spoken"),
        "--range": .written("Parts of files are not fetched"), "-X": .written(Self.body),
        "--request": .written(Self.body), "--data": .written(Self.body), "-F": .written(Self.body),
        "-T": .written("Write --stall-timeout TIME for wget's -T; nothing is uploaded"),
        "--upload-file": .written("Nothing is uploaded"),
        "--compressed": .written("Files come as they are: a coding would make ranges of something else"),
        "-z": .written("A file that is there is held against the server in any case: leave it out"),
        "--time-cond": .written("A file that is there is held against the server in any case: leave it out"),
        "-w": .written("Write --json for facts to read by programs"),
        "--write-out": .written("Write --json for facts to read by programs"),
        "-D": .written("Write segdl probe URL to see what a server says"),
        "--dump-header": .written("Write segdl probe URL to see what a server says"),
        "-n": .written("-n is curl's --netrc and axel's number of connections: write --netrc, or -s N"),
        "--http2": .written("HTTP/1.1 is spoken, which is the fastest for one file"),
        "--http3": .written("HTTP/1.1 is spoken, which is the fastest for one file"),
        "-y": .written("A connection that falls silent is replaced after --stall-timeout TIME"),
        "-Y": .written("A connection that falls silent is replaced after --stall-timeout TIME"),
        "--speed-limit": .written("A connection that falls silent is replaced after --stall-timeout TIME"),
        "--speed-time": .written("A connection that falls silent is replaced after --stall-timeout TIME"),
        "--socks5": .written("Write --proxy socks5://HOST:PORT"),
        "--socks5-hostname": .written("Write --proxy socks5h://HOST:PORT"),
        "--cookie-jar": .written("Cookies that servers set are kept for the run only"),
        "--parallel-immediate": .given,
        // wget
        "-nc": .written("Write --if-exists skip"), "--no-clobber": .written("Write --if-exists skip"),
        "-nv": .written("Write -q, or --progress none"), "--no-verbose": .written("Write -q, or --progress none"),
        "--timestamping": .written("A file that is there is held against the server in any case: leave it out"),
        "-t": .written("Write --retry N, for failures in a row without a byte of progress"),
        "--timeout": .written("Write --stall-timeout TIME"), "--read-timeout": .written("Write --stall-timeout TIME"),
        "--dns-timeout": .written("Write --connect-timeout TIME"),
        "--spider": .written("Write segdl probe URL"), "--server-response": .written("Write segdl probe URL"),
        "--content-disposition": .given, "--trust-server-names": .given, "--show-progress": .given,
        "--keep-session-cookies": .given, "--no-hsts": .given, "-nd": .given, "--no-directories": .given,
        "--max-redirect": .written("Write --max-redirs N"), "-B": .written("Write --base-url URL"),
        "--base": .written("Write --base-url URL"), "--inet4-only": .written("Write -4"),
        "--inet6-only": .written("Write -6"), "--bind-address": .written("Write --interface ADDRESS"),
        "--no-proxy": .written("Write --noproxy '*' for none, or --noproxy LIST"),
        "--save-cookies": .written("Cookies that servers set are kept for the run only"),
        "--post-data": .written(Self.body), "--post-file": .written(Self.body), "--method": .written(Self.body),
        "--recursive": .written(Self.recursion), "--level": .written(Self.recursion), "-np": .written(Self.recursion),
        "--no-parent": .written(Self.recursion), "--page-requisites": .written(Self.recursion),
        "--accept": .written(Self.recursion), "-l": .written(Self.recursion),
        "--background": .written("Write nohup segdl … &: what is interrupted can be gone on with"),
        "--wait": .written("Write -j 1 to fetch one file after the other"),
        "--metalink-over-http": .written(
            "Write --linked-mirrors; segdl probe URL shows them"),
        "--quota": .written("Write --max-filesize SIZE for a file's length"),
        // axel
        "--num-connections": .written("Write -s N"), "--max-speed": .written("Write --limit-rate RATE"),
        "--alternate": .written("Write --progress bar"), "--percentage": .written("Write --progress log"),
        "-a": .written("Write --progress bar for axel's -a"),
        "-p": .written("Write --progress log for axel's -p. Links of pages are not followed"),
        "--search": .written("Mirrors are not searched for: name them with --mirror"),
        // aria2
        "--max-tries": .written("Write --retry N, for failures in a row without a byte of progress"),
        "--allow-overwrite": .written("Write --if-exists overwrite"),
        "--auto-file-renaming": .written("Write --if-exists rename, or fail"),
        "--check-integrity": .written("Write --checksum ALGO=HEX"), "-V": .written("Write --checksum ALGO=HEX"),
        "--conditional-get": .given, "--always-resume": .written("Write -c must"),
        "--http-proxy": .written("Write --proxy URL"), "--https-proxy": .written("Write --proxy URL"),
        "--all-proxy-user": .written("Write --proxy-user NAME:PASSWORD"),
        "--all-proxy-passwd": .written("Write --proxy-user NAME:PASSWORD"),
        "--check-certificate": .written("Write --insecure to check none"),
        "--on-download-complete": .written("Write --on-complete CMD, which has the event on its standard input"),
        "--on-download-error": .written("Write --on-error CMD, which has the event on its standard input"),
        "--disable-ipv6": .written("Write -4"),
        "--save-session": .written("Manifests beside the files keep it: segdl resume --all"),
        "--force-sequential": .given, "--summary-interval": .written("Write --progress log"),
        "--lowest-speed-limit": .written("A connection that falls silent is replaced after --stall-timeout TIME"),
        "--select-file": .written(Self.torrent), "--seed-time": .written(Self.torrent),
        "--torrent-file": .written(Self.torrent), "--enable-rpc": .written("There is no RPC"),
        "-M": .written("Write -i FILE for a metalink"), "--metalink-base-uri": .written("Write --base-url URL"),
        "--follow-metalink": .written(
            "Write -i URL to fetch what a metalink names, and the URL alone for the metalink"),
        "--uri-selector": .given, "--stream-piece-selector": .given,
        "--piece-length": .written("Write --min-split-size SIZE"), "--log": .written("Write --json, or -v"),
    ]
}
