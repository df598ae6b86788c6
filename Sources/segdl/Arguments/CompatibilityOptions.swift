/// Options of curl, wget, axel and aria2 that segdl does not have: the first pass of the ``ArgumentPipeline``.
///
/// Options that ask for segdl's default behaviour are ignored, and those that segdl has under another name are renamed.
/// For the others the error states the equivalent.
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
        /// These arguments mean the same.
        case spelled([String])
        /// segdl's option with the same value, after a prefix. The value is in the same word or the next.
        case renamed(String, prefix: String = "")
        /// What these values mean, for an option that is on without one.
        case choice([String: [String]])
        /// segdl spells it differently or does not support it. The text is the hint of the error.
        case written(String)
    }

    /// The arguments in segdl's spelling, without the options that are segdl's default.
    static func understood(_ arguments: [String]) throws(Refusal) -> [String] {
        // wget's -qO FILE.
        let end = arguments.firstIndex(of: "--") ?? arguments.endIndex
        let separate = arguments[..<end].flatMap { $0.hasPrefix("-qO") ? ["-q", "-" + $0.dropFirst(2)] : [$0] }
        let walk = ArgumentWalk(separate + arguments[end...], foreignOptions: Self.withValue)
        var understood: [String] = []
        var items = walk.items[...]
        while let item = items.popFirst() {
            if let taken = try Self.takingNext(item, items.first) {
                understood += taken.arguments
                items = items.dropFirst(taken.skipped)
            } else {
                understood += try Self.meaning(of: item)
            }
        }
        return understood + walk.rest
    }

    private static func meaning(of item: ArgumentWalk.Item) throws(Refusal) -> [String] {
        switch Self.meanings[item.name] {
        case .given?: return item.following
        case .givenAs(let value)?:
            guard item.value == value else {
                throw Refusal(word: item.name, hint: "Only \(item.name) \(value) is supported")
            }
            return []
        case .spelled(let arguments)?: return arguments
        case .renamed(let option, let prefix)?:
            guard let value = item.value else { throw Refusal(word: item.name, hint: "It needs a value, as \(option)") }
            guard option != "--retry" || value != "0" else {
                throw Refusal(word: item.name, hint: "0 would retry without end. Write --retry N with a great N")
            }
            return ["\(option)=\(prefix)\(value)"]
        case .choice(let meanings)?:
            guard let arguments = meanings[item.value ?? "true"] else {
                throw Refusal(word: item.name, hint: "Its values are \(meanings.keys.sorted().joined(separator: ", "))")
            }
            return arguments
        case .written(let hint)?: throw Refusal(word: item.name, hint: hint)
        case nil:
            return (Self.isLetters(item.word) ? try Self.separated(item.word) : [item.word]) + item.following
        }
    }

    /// The meaning of `-k` and `-O`, which curl, wget and aria2 disagree about: what follows decides.
    ///
    /// - Returns: Nil for other options.
    private static func takingNext(
        _ item: ArgumentWalk.Item, _ next: ArgumentWalk.Item?
    ) throws(Refusal) -> (arguments: [String], skipped: Int)? {
        if item.word.hasPrefix("-k") {
            // aria2's -k is the length below which it does not split.
            let isAlone = item.word == "-k"
            let value = isAlone ? next?.word : String(item.word.dropFirst(2))
            guard let value, ByteCount(argument: value) != nil else { return nil }
            return (["--min-split-size=\(value)"], isAlone ? 1 : 0)
        }
        if item.word.hasPrefix("-O"), item.word.count > 2, !Self.isLetters(item.word) {
            // wget's -OFILE.
            return (["-o", String(item.word.dropFirst(2))], 0)
        }
        guard item.word == "-O" || (Self.isLetters(item.word) && item.word.contains("O")) else { return nil }
        let others = try Self.separated(item.word.filter { $0 != "O" })
        // curl's: an option, a URL or nothing follows.
        guard let next = next?.word, next == "-" || !["-", "http://", "https://"].contains(where: next.hasPrefix) else {
            return (others, 0)
        }
        // A name is wget's. Whether `example.org/file` is a name or a URL cannot be seen.
        let isName = !next.contains("/") || ["/", "./", "../"].contains(where: next.hasPrefix)
        guard next == "-" || (isName && item.word.last == "O") else { return nil }
        return (others + ["-o", next], 1)
    }

    /// Whether a word is several of curl's letters.
    private static func isLetters(_ word: String) -> Bool {
        let letters = word.dropFirst()
        return word.hasPrefix("-") && letters.count > 1 && letters.allSatisfy { "fLOSJsR#k".contains($0) }
            && letters.contains { "fLOSJ#".contains($0) }
    }

    /// The options for curl's letters in one word, such as `-fsSL`.
    private static func separated(_ word: String) throws(Refusal) -> [String] {
        let letters = word.dropFirst()
        for letter in ["O", "k"] where letters.contains(letter) {
            guard case .written(let hint)? = Self.meanings["-\(letter)"] else { continue }
            throw Refusal(word: word, hint: hint)
        }
        return [("s", "--quiet"), ("R", "--remote-time"), ("#", "--progress=bar")]
            .filter { letters.contains($0.0) }.map(\.1)
    }

    private static let recursion =
        "segdl does not follow links in pages. Write --list-from URL for the files of one directory"
    private static let body = "segdl fetches files with GET only"
    private static let torrent = "segdl does not support BitTorrent"
    private static let head = "Write segdl probe URL to see what a server reports"
    private static let time = "Write --if-exists update to fetch a file again only if the remote one is newer"
    private static let cookies = "segdl keeps the cookies that servers set until the end of the run only"
    private static let version = "segdl uses HTTP/1.1, which is the fastest for one file"

    /// The options that take the next word as their value.
    private static let withValue = Set(
        Self.meanings.compactMap { option, meaning in
            switch meaning {
            case .givenAs, .renamed: option
            case .given, .spelled, .choice, .written: nil
            }
        })

    private static let meanings: [String: Meaning] = [
        // curl
        "-L": .given, "--location": .given, "-f": .given, "--fail": .given, "--fail-early": .given,
        "-S": .given, "--show-error": .given, "-J": .given, "--remote-header-name": .given, "-Z": .given,
        "--parallel": .given, "--retry-all-errors": .given, "--retry-connrefused": .given,
        "--tlsv1.2": .given, "--http1.1": .given, "--globon": .given, "-N": .spelled(["--if-exists=update"]),
        "--no-buffer": .given,
        "--remove-on-error": .written("segdl keeps the bytes of a failed file, to resume it"),
        "-C": .givenAs("-"), "--continue-at": .givenAs("-"),
        "-O": .written(
            "Write -o FILE for wget's -O, and nothing for curl's, which keeps the remote name. This one could be both"),
        "--remote-name": .given,
        "--remote-name-all": .given,
        "-k": .written(
            "Write --insecure for curl's -k. With a size it is aria2's and means --min-split-size; wget's converts links"
        ),
        "-U": .written("curl's -U is --proxy-user and wget's -U is --user-agent. Write the long name"),
        "-E": .renamed("--cert"),
        "-#": .spelled(["--progress=bar"]), "--progress-bar": .spelled(["--progress=bar"]),
        "--no-progress-meter": .spelled(["--progress=none"]), "--silent": .spelled(["--quiet"]),
        "--output-dir": .renamed("--dir"), "-I": .written("Write segdl probe URL"),
        "--head": .written("Write segdl probe URL"),
        "-r": .written("Parts of files cannot be fetched (curl's -r), and links are not followed (wget's -r)"),
        "--range": .written("Parts of files cannot be fetched"), "-X": .written(Self.body),
        "--request": .written(Self.body), "--data": .written(Self.body), "-F": .written(Self.body),
        "-T": .renamed("--stall-timeout"),
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
        "--socks5": .renamed("--proxy", prefix: "socks5://"),
        "--socks5-hostname": .renamed("--proxy", prefix: "socks5h://"),
        "--cookie-jar": .written(Self.cookies),
        "--parallel-immediate": .given,
        // wget
        "--directory-prefix": .renamed("--dir"), "--output-document": .renamed("--output"),
        "-nc": .spelled(["--if-exists=skip"]), "--no-clobber": .spelled(["--if-exists=skip"]),
        "-nv": .spelled(["--progress=none"]), "--no-verbose": .spelled(["--progress=none"]),
        "--timestamping": .spelled(["--if-exists=update"]),
        "-t": .renamed("--retry"),
        "--timeout": .renamed("--stall-timeout"), "--read-timeout": .renamed("--stall-timeout"),
        "--dns-timeout": .renamed("--connect-timeout"),
        "--spider": .written("Write segdl probe URL"), "--server-response": .written("Write segdl probe URL"),
        "--content-disposition": .given, "--trust-server-names": .given, "--show-progress": .given,
        "--keep-session-cookies": .given, "--no-hsts": .given, "-nd": .given, "--no-directories": .given,
        "--max-redirect": .renamed("--max-redirs"), "-B": .renamed("--base-url"),
        "--base": .renamed("--base-url"), "--inet4-only": .spelled(["-4"]),
        "--inet6-only": .spelled(["-6"]), "--bind-address": .renamed("--interface"),
        "--no-proxy": .spelled(["--noproxy=*"]),
        "--save-cookies": .written(Self.cookies),
        "--post-data": .written(Self.body), "--post-file": .written(Self.body), "--method": .written(Self.body),
        "--recursive": .written(Self.recursion), "--level": .written(Self.recursion), "-np": .written(Self.recursion),
        "--no-parent": .written(Self.recursion), "--page-requisites": .written(Self.recursion),
        "-l": .written(Self.recursion),
        "--wait": .written("Write -j 1 to fetch one file at a time"),
        "--metalink-over-http": .written(
            "Write --linked-mirrors; segdl probe URL shows these mirrors"),
        "--quota": .written("Write --max-filesize SIZE to limit the length of each file"),
        // axel
        "--num-connections": .renamed("--segments"), "--max-speed": .renamed("--limit-rate"),
        "--alternate": .spelled(["--progress=bar"]), "--percentage": .spelled(["--progress=log"]),
        "-a": .written("Write --progress bar for axel's -a"),
        "-p": .written("Write --progress log for axel's -p. segdl does not follow links in pages (wget's -p)"),
        "--search": .written("segdl does not search for mirrors. Name them with --mirror URL"),
        // aria2
        "--max-tries": .renamed("--retry"),
        "--allow-overwrite": .choice(["true": ["--if-exists=overwrite"], "false": []]),
        "--auto-file-renaming": .choice(["true": ["--if-exists=rename"], "false": []]),
        "--check-integrity": .written("Write --checksum ALGO=HEX"), "-V": .written("Write --checksum ALGO=HEX"),
        "--conditional-get": .choice(["true": ["--if-exists=update"], "false": []]),
        "--always-resume": .choice(["true": ["--continue=must"], "false": []]),
        "--http-proxy": .written("Write --proxy URL"), "--https-proxy": .written("Write --proxy URL"),
        "--all-proxy-user": .written("Write --proxy-user NAME:PASSWORD"),
        "--all-proxy-passwd": .written("Write --proxy-user NAME:PASSWORD"),
        "--check-certificate": .choice(["true": [], "false": ["--insecure"]]),
        "--on-download-complete": .written("Write --on-complete CMD, which gets the event on its standard input"),
        "--on-download-error": .written("Write --on-error CMD, which gets the event on its standard input"),
        "--disable-ipv6": .choice(["true": ["-4"], "false": []]),
        "--save-session": .written("Leave it out: manifests beside the files keep the state. Write segdl resume --all"),
        "--force-sequential": .given, "--summary-interval": .written("Write --progress log"),
        "--select-file": .written(Self.torrent), "--seed-time": .written(Self.torrent),
        "--torrent-file": .written(Self.torrent),
        "--enable-rpc": .written("Write segdl daemon --rpc-listen 127.0.0.1:6800 for aria2's RPC"),
        "-M": .renamed("--input-file"), "--metalink-base-uri": .renamed("--base-url"),
        "--follow-metalink": .written(
            "Write -i URL to fetch the files that a metalink lists, or the URL alone to fetch the metalink itself"),
        "--uri-selector": .given, "--stream-piece-selector": .given,
        "--piece-length": .renamed("--min-split-size"), "--log": .written("Write --json, or -v"),
    ]
}
