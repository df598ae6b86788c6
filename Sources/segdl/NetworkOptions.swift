import ArgumentParser
import SegmentedDownload

/// What is said to servers, and who is trusted.
struct NetworkOptions: ParsableArguments {
    @Option(
        name: [.customShort("H", allowingJoined: true), .long],
        help: ArgumentHelp(
            "A field sent to the URL's own server, never to another. Repeatable.", valueName: "NAME: VALUE"))
    var header: [HeaderField] = []

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

    @Option(
        help: ArgumentHelp(
            "The network interface that connections begin at, by name or address; the next one where it has no address. Repeatable.",
            valueName: "NAME|ADDRESS"))
    var interface: [String] = []

    /// What to do where a connection would go over an interface whose bytes cost money.
    enum Metered: String, Hashable, CaseIterable, ExpressibleByArgument {
        case pause, allow
    }

    @Option(
        help: ArgumentHelp(
            "Where bytes cost money (mobile broadband, ppp, bluetooth): pause waits for another network, as for one that is down.",
            valueName: "pause|allow"))
    var metered = Metered.allow

    @Option(help: ArgumentHelp("Redirects followed.", valueName: "N"))
    var maxRedirs = 20

    mutating func validate() throws {
        if self.interface.contains("") { throw ValidationError("--interface is empty") }
        if self.maxRedirs < 0 { throw ValidationError("--max-redirs is at least 0") }
    }

    /// The fields, in order; an option's own wins over one given by name.
    var fields: [(name: String, value: String)] {
        var fields = self.header.map { (name: $0.name, value: $0.value) }
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
        if !self.interface.isEmpty { configuration.network.interfaces = self.interface }
        configuration.network.allowsMetered = self.metered == .allow
    }
}
