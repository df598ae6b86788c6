/// Options of curl, wget, axel and aria2 that segdl does not have: the first pass of the ``ArgumentPipeline``.
///
/// Options that ask for segdl's default behaviour are ignored. For the others the error states the equivalent.
enum CompatibilityOptions {
    /// An option that segdl does not support, and the equivalent.
    struct Refusal: Error, Hashable {
        let word: String
        let hint: String
    }

    private enum Meaning {
        /// It is segdl's default. The option is ignored.
        case given
        /// It is segdl's default if it has this value.
        case givenAs(String)
        /// segdl spells it differently or does not support it. The text is the hint of the error.
        case written(String)
    }

    /// The arguments without the options that are segdl's default.
    static func understood(_ arguments: [String]) throws(Refusal) -> [String] {
        try ArgumentWalk(arguments, foreignOptions: Self.withValue).replacingItems { item throws(Refusal) in
            switch Self.meanings[item.name] {
            case .given?: return item.following
            case .givenAs(let value)?:
                guard item.value == value else {
                    throw Refusal(word: item.name, hint: "Only \(item.name) \(value) is supported")
                }
                return []
            case .written(let hint)?: throw Refusal(word: item.name, hint: hint)
            case nil: return (try Self.separated(item.word) ?? [item.word]) + item.following
            }
        }
    }

    /// The options for several of curl's letters in one word, such as `-fsSL`; nil if the word is something else.
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

    private static let recursion = "segdl does not follow links in pages. Put the URLs in a list and use -i"
    private static let body = "segdl fetches files with GET only"
    private static let torrent = "segdl does not support BitTorrent"
    private static let head = "Write segdl probe URL to see what a server reports"
    private static let name = "Leave it out: segdl keeps the remote name in any case"
    private static let time = "Leave it out: segdl compares an existing file with the server's in any case"
    private static let cookies = "segdl keeps the cookies that servers set until the end of the run only"
    private static let version = "segdl uses HTTP/1.1, which is the fastest for one file"

    /// The options whose value decides.
    private static let withValue = Set(
        Self.meanings.compactMap { option, meaning in
            if case .givenAs = meaning { option } else { nil }
        })

    private static let meanings: [String: Meaning] = [
        // curl
        "-L": .given, "--location": .given, "-f": .given, "--fail": .given, "--fail-early": .given,
        "-S": .given, "--show-error": .given, "-J": .given, "--remote-header-name": .given, "-Z": .given,
        "--parallel": .given, "--retry-all-errors": .given, "--retry-connrefused": .given,
        "--tlsv1.2": .given, "--http1.1": .given, "--globon": .given, "-N": .given, "--no-buffer": .given,
        "--remove-on-error": .written("segdl keeps the bytes of a failed file, to resume it"),
        "-C": .givenAs("-"), "--continue-at": .givenAs("-"),
        "-O": .written(
            "Write -o FILE for wget's -O. curl's -O keeps the remote name; the latter is the default"
        ),
        "--remote-name": .written(Self.name),
        "--remote-name-all": .written(Self.name),
        "-k": .written("curl's -k is --insecure and wget's -k is --convert-links. Write --insecure for the former"),
        "-U": .written("curl's -U is --proxy-user and wget's -U is --user-agent. Write the long name"),
        "-E": .written("Write --cert FILE for curl's -E"),
        "-#": .written("Write --progress bar"), "--progress-bar": .written("Write --progress bar"),
        "--no-progress-meter": .written("Write --progress none"), "--silent": .written("Write -q"),
        "--output-dir": .written("Write -d DIR"), "-I": .written("Write segdl probe URL"),
        "--head": .written("Write segdl probe URL"),
        "-r": .written("Parts of files cannot be fetched (curl's -r), and links are not followed (wget's -r)"),
        "--range": .written("Parts of files cannot be fetched"), "-X": .written(Self.body),
        "--request": .written(Self.body), "--data": .written(Self.body), "-F": .written(Self.body),
        "-T": .written("Write --stall-timeout TIME for wget's -T; files cannot be uploaded"),
        "--upload-file": .written("Files cannot be uploaded"),
        "--compressed": .written("segdl requests no content coding, because ranges apply to the coded bytes"),
        "-z": .written(Self.time),
        "--time-cond": .written(Self.time),
        "-w": .written("Write --json for output that programs can read"),
        "--write-out": .written("Write --json for output that programs can read"),
        "-D": .written(Self.head),
        "--dump-header": .written(Self.head),
        "-n": .written("curl's -n is --netrc and axel's -n is the number of connections. Write --netrc, or -s N"),
        "--http2": .written(Self.version),
        "--http3": .written(Self.version),
        "--socks5": .written("Write --proxy socks5://HOST:PORT"),
        "--socks5-hostname": .written("Write --proxy socks5h://HOST:PORT"),
        "--cookie-jar": .written(Self.cookies),
        "--parallel-immediate": .given,
        // wget
        "-nc": .written("Write --if-exists skip"), "--no-clobber": .written("Write --if-exists skip"),
        "-nv": .written("Write -q, or --progress none"), "--no-verbose": .written("Write -q, or --progress none"),
        "--timestamping": .written(Self.time),
        "-t": .written("Write --retry N, which counts failures in a row without a byte of progress"),
        "--timeout": .written("Write --stall-timeout TIME"), "--read-timeout": .written("Write --stall-timeout TIME"),
        "--dns-timeout": .written("Write --connect-timeout TIME"),
        "--spider": .written("Write segdl probe URL"), "--server-response": .written("Write segdl probe URL"),
        "--content-disposition": .given, "--trust-server-names": .given, "--show-progress": .given,
        "--keep-session-cookies": .given, "--no-hsts": .given, "-nd": .given, "--no-directories": .given,
        "--max-redirect": .written("Write --max-redirs N"), "-B": .written("Write --base-url URL"),
        "--base": .written("Write --base-url URL"), "--inet4-only": .written("Write -4"),
        "--inet6-only": .written("Write -6"), "--bind-address": .written("Write --interface ADDRESS"),
        "--no-proxy": .written("Write --noproxy '*' to use no proxy, or --noproxy LIST"),
        "--save-cookies": .written(Self.cookies),
        "--post-data": .written(Self.body), "--post-file": .written(Self.body), "--method": .written(Self.body),
        "--recursive": .written(Self.recursion), "--level": .written(Self.recursion), "-np": .written(Self.recursion),
        "--no-parent": .written(Self.recursion), "--page-requisites": .written(Self.recursion),
        "--accept": .written(Self.recursion), "-l": .written(Self.recursion),
        "--wait": .written("Write -j 1 to fetch one file at a time"),
        "--metalink-over-http": .written(
            "Write --linked-mirrors; segdl probe URL shows these mirrors"),
        "--quota": .written("Write --max-filesize SIZE to limit the length of each file"),
        // axel
        "--num-connections": .written("Write -s N"), "--max-speed": .written("Write --limit-rate RATE"),
        "--alternate": .written("Write --progress bar"), "--percentage": .written("Write --progress log"),
        "-a": .written("Write --progress bar for axel's -a"),
        "-p": .written("Write --progress log for axel's -p. segdl does not follow links in pages (wget's -p)"),
        "--search": .written("segdl does not search for mirrors. Name them with --mirror URL"),
        // aria2
        "--max-tries": .written("Write --retry N, which counts failures in a row without a byte of progress"),
        "--allow-overwrite": .written("Write --if-exists overwrite"),
        "--auto-file-renaming": .written("Write --if-exists rename, or fail"),
        "--check-integrity": .written("Write --checksum ALGO=HEX"), "-V": .written("Write --checksum ALGO=HEX"),
        "--conditional-get": .given, "--always-resume": .written("Write -c must"),
        "--http-proxy": .written("Write --proxy URL"), "--https-proxy": .written("Write --proxy URL"),
        "--all-proxy-user": .written("Write --proxy-user NAME:PASSWORD"),
        "--all-proxy-passwd": .written("Write --proxy-user NAME:PASSWORD"),
        "--check-certificate": .written("Write --insecure to skip the check, which is on by default"),
        "--on-download-complete": .written("Write --on-complete CMD, which gets the event on its standard input"),
        "--on-download-error": .written("Write --on-error CMD, which gets the event on its standard input"),
        "--disable-ipv6": .written("Write -4"),
        "--save-session": .written("Leave it out: manifests beside the files keep the state. Write segdl resume --all"),
        "--force-sequential": .given, "--summary-interval": .written("Write --progress log"),
        "--select-file": .written(Self.torrent), "--seed-time": .written(Self.torrent),
        "--torrent-file": .written(Self.torrent),
        "--enable-rpc": .written("Write segdl daemon --rpc-listen 127.0.0.1:6800 for aria2's RPC"),
        "-M": .written("Write -i FILE for a metalink"), "--metalink-base-uri": .written("Write --base-url URL"),
        "--follow-metalink": .written(
            "Write -i URL to fetch the files that a metalink lists, or the URL alone to fetch the metalink itself"),
        "--uri-selector": .given, "--stream-piece-selector": .given,
        "--piece-length": .written("Write --min-split-size SIZE"), "--log": .written("Write --json, or -v"),
    ]
}
