import ArgumentParser
import SegmentedDownload

/// What is said to servers, and who is trusted.
struct NetworkOptions: ParsableArguments {
    @Option(
        name: [.customShort("H", allowingJoined: true), .long],
        help: ArgumentHelp(
            "A field sent to the URL's own server, never to another. Repeatable.", valueName: "NAME: VALUE"))
    var header: [String] = []

    @Option(
        name: [.customShort("A", allowingJoined: true), .long],
        help: ArgumentHelp("The User-Agent sent.", valueName: "NAME"))
    var userAgent: String?

    @Option(
        name: [.customShort("e", allowingJoined: true), .long],
        help: ArgumentHelp("The Referer sent.", valueName: "URL"))
    var referer: String?

    @Option(help: ArgumentHelp("The authorities to trust instead of the system's, as PEM.", valueName: "FILE"))
    var cacert: String?

    @Flag(help: "Do not check certificates.")
    var insecure = false

    @Flag(help: "Let a redirect lead from https to http.")
    var allowDowngrade = false

    @Option(help: ArgumentHelp("Redirects followed.", valueName: "N"))
    var maxRedirs = 20

    mutating func validate() throws {
        for header in self.header {
            guard let colon = header.firstIndex(of: ":"), colon != header.startIndex else {
                throw ValidationError("--header is NAME: VALUE, not \"\(header)\"")
            }
        }
        if self.maxRedirs < 0 { throw ValidationError("--max-redirs is at least 0") }
    }

    /// The fields, in order; an option's own wins over one given by name.
    var fields: [(name: String, value: String)] {
        var fields = self.header.map { header in
            let parts = header.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return (name: String(parts[0]), value: Self.trimmed(parts[1]))
        }
        for (name, value) in [("User-Agent", self.userAgent), ("Referer", self.referer)] {
            guard let value else { continue }
            fields.removeAll { $0.name.lowercased() == name.lowercased() }
            fields.append((name, value))
        }
        return fields
    }

    func apply(to configuration: inout DownloadConfiguration) {
        configuration.certificateAuthorityFile = self.cacert
        configuration.verifiesCertificates = !self.insecure
        configuration.allowsDowngrade = self.allowDowngrade
        configuration.redirectsMax = self.maxRedirs
    }

    private static func trimmed(_ text: Substring) -> String {
        let isBlank = { (character: Character) in character == " " || character == "\t" }
        let start = text.drop(while: isBlank)
        return String(start.reversed().drop(while: isBlank).reversed())
    }
}
