import Origin

/// A file that is added to the queue of the background service.
struct ServiceFile: Hashable, Sendable, CustomStringConvertible {
    /// What names the file. Until the response has come, the queue has only the directory of the last two.
    enum Naming: Hashable, Sendable { case option, url, response }

    /// What the origin offers.
    enum Serving: Hashable, Sendable {
        case ranges
        /// The whole file with its length, whatever range is requested.
        case whole
        /// The whole file, whose length shows at its end.
        case unknownLength
    }

    /// Its final name, which no other file has.
    private(set) var name: String
    let length: Int64
    let seed: UInt64
    /// The URL's path, which only its twin shares.
    let path: String
    private let query: String
    private(set) var naming: Naming
    let serving: Serving
    /// Whether the download may be cancelled.
    let isVictim: Bool
    private let options: [String]

    /// 12 seeds: the origin keeps the content of 16, and computes that of others again for each request.
    private static let seeds: UInt64 = 12
    /// 8 MiB: up to this length a file has no manifest before its first checkpoint or pause.
    private static let manifestLengthMin: Int64 = 8 << 20

    /// - Parameters:
    ///   - group: A part of the path, for files with the same number.
    ///   - pace: The key of the origin that limits the rate.
    init(
        _ number: Int, in group: String, length: Int64, pace: String, naming: Naming = .url,
        serving: Serving = .ranges, isVictim: Bool = false, options: [String] = []
    ) {
        let digits = String(number)
        // All have the same length, so that no name or path is the beginning of another.
        let stem = "f" + String(repeating: "0", count: max(6 - digits.count, 0)) + digits
        self.name = "\(stem).bin"
        self.length = length
        self.seed = 1 + UInt64(number) % Self.seeds
        self.path = "/\(length)/\(group)/\(naming == .response ? "\(stem).cgi" : self.name)"
        var query = "seed=\(self.seed)&\(pace)"
        if naming == .response { query += "&disposition=attachment;filename=\(self.name)" }
        switch serving {
        case .ranges: break
        case .whole: query += "&ranges=no"
        case .unknownLength: query += "&ranges=no&length=chunked"
        }
        self.query = query
        self.naming = naming
        self.serving = serving
        self.isVictim = isVictim
        self.options = options
    }

    var description: String { self.name }

    /// Whether the file is kept only as a whole when the daemon is killed.
    var isAllOrNothing: Bool { self.serving != .ranges || self.length <= Self.manifestLengthMin }

    /// The same URL, to another name.
    var twin: Self {
        var twin = self
        twin.name = "t\(self.name.dropFirst())"
        twin.naming = .option
        return twin
    }

    /// The arguments of `segdl add`.
    func arguments(into directory: String, from origin: Origin) -> [String] {
        let name = self.naming == .option ? ["-o", self.name] : []
        return ["-d", directory] + name + self.options + [origin.url("\(self.path)?\(self.query)")]
    }

    /// Whether the line is about this file. Lists show `?…` in place of a URL's query.
    func matches(_ line: ServiceSnapshot.Line, in directory: String, from origin: Origin) -> Bool {
        guard line.url.prefix(while: { $0 != "?" }) == origin.url(self.path) else { return false }
        return line.path == "\(directory)/\(self.name)" || self.naming != .option && line.path == "\(directory)/"
    }
}
