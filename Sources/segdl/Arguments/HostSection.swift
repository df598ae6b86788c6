import SegmentedDownload

/// The options of the configuration file for files from some hosts.
struct HostSection {
    /// The line of its heading.
    let line: Int
    let hosts: [HostPattern]
    var edits: [FileEdit] = []

    /// Reads `[host NAME…]`.
    init?(heading: String, line: Int) {
        guard heading.hasPrefix("["), heading.hasSuffix("]") else { return nil }
        let words = heading.dropFirst().dropLast().split { $0 == " " || $0 == "\t" }
        let hosts = words.dropFirst().compactMap { HostPattern($0) }
        guard words.first == "host", !hosts.isEmpty, hosts.count == words.count - 1 else { return nil }
        self.line = line
        self.hosts = hosts
    }

    /// How exactly the section names a host. Of several sections for one host, the greatest takes precedence. Nil if it
    /// does not apply.
    func rank(for host: String) -> Int? {
        self.hosts.compactMap { $0.matches(host) ? $0.rank : nil }.max()
    }

    /// Why its lines contradict each other; nil if they do not.
    ///
    /// A missing password is an error: a password entered at the terminal would be sent to every host with that user
    /// name.
    var problem: String? {
        do throws(DownloadError) {
            var draft = try RequestDraft.sample()
            try draft.apply(self.edits)
            return nil
        } catch {
            return error.message
        }
    }

    /// Why an option is not allowed in a section, and what to write instead.
    static func refusal(of name: String) -> String {
        let hint =
            switch name {
            case "limit-rate", "max-overall-download-limit": "write limit-rate-per-file"
            case "checksum", "id", "mirror", "out", "output": "it applies to one file"
            default: "it is unknown, or it applies to the whole run and belongs above the first section"
            }
        let names = FileOption.all.filter { $0.scope == .anywhere }.flatMap(\.names).sorted().joined(separator: ", ")
        return "\(name) cannot stand in a [host] section: \(hint). Options for a host: \(names)"
    }
}

/// A host name or address, or `*.` and a domain for all hosts below that domain.
struct HostPattern: Hashable {
    private let name: String
    private let isDomain: Bool

    init?(_ text: some StringProtocol) {
        var name = text.lowercased()
        self.isDomain = name.hasPrefix("*.")
        if self.isDomain { name.removeFirst(2) }
        if name.hasPrefix("["), name.hasSuffix("]"), name.contains(":") { name = String(name.dropFirst().dropLast()) }
        // Two or more colons mean an IPv6 address. A single colon would begin a port.
        let colons = name.count { $0 == ":" }
        let allowed = colons > 0 ? "0123456789abcdef:." : "0123456789abcdefghijklmnopqrstuvwxyz-._"
        guard !name.isEmpty, !name.hasPrefix("."), colons != 1, colons == 0 || !self.isDomain,
            name.allSatisfy({ allowed.contains($0) })
        else { return nil }
        self.name = name
    }

    /// - Parameter host: in lower case, an IPv6 address in brackets or not.
    func matches(_ host: String) -> Bool {
        let host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        return self.isDomain ? host.hasSuffix(".\(self.name)") : host == self.name
    }

    /// Greater for a more exact pattern.
    var rank: Int { self.isDomain ? self.name.utf8.count : .max }
}
