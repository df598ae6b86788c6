import ArgumentParser
import SegmentedDownload

/// Prints what servers report about files, without fetching them.
struct ProbeCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "probe",
        abstract: "Prints a file's length, ranges, validator, digest, name, redirects and mirrors.",
        usage: "segdl probe [options] URL…",
        discussion: """
            Requests the first byte of each file, and writes no file.

              segdl probe https://example.org/file.iso
              segdl probe --json https://example.org/file.iso | jq .bytes_total
            """
    )

    @Argument(help: ArgumentHelp("The files to probe.", valueName: "URL"))
    var urls: [String]

    @Flag(help: "Write one JSON object a line.")
    var json = false

    @Option(help: ArgumentHelp("The maximum time to establish a connection.", valueName: "TIME"))
    var connectTimeout = Seconds(.seconds(15))

    @OptionGroup(title: "Requests") var identity: IdentityOptions
    @OptionGroup(title: "Network") var network: NetworkOptions

    func perform() async -> ExitCode {
        await CommandOutput.withClient(self.network) { configuration in
            configuration.connectTimeout = self.connectTimeout.duration
            try self.identity.apply(
                to: &configuration, cookieFiles: OptionLayers(line: self.identity.edits).cookieFiles)
        } _: { client, output in
            var codes: [ExitCode] = []
            for url in self.urls {
                do {
                    var request = DownloadRequest(try SourceURL(url))
                    try self.identity.apply(to: &request)
                    let file = try await client.probe(request)
                    output.send((self.json ? ProbeRecord(file).jsonLine : Self.text(file)) + "\n")
                    codes.append(.ok)
                } catch {
                    codes.append(output.report(error))
                }
            }
            guard let bad = codes.first(where: { $0 != .ok }) else { return .ok }
            return codes.count == 1 ? bad : .partial
        }
    }

    private static func text(_ file: RemoteFile) -> String {
        var rows = [("url", file.source)]
        rows += file.redirects.map { ("redirected", $0) }
        rows.append(("status", "\(file.status)"))
        rows.append(("name", file.name.shown))
        rows.append(("length", file.length.map { "\($0) (\(ByteCount($0)))" } ?? "unknown"))
        rows.append(("ranges", file.supportsRanges ? "yes" : "no: one connection, cannot be resumed"))
        rows.append(("validator", file.validator ?? "none"))
        if let type = file.type { rows.append(("type", type.shown)) }
        if let digest = file.digest { rows.append(("digest", digest.description)) }
        rows += file.duplicates.map { ("duplicate", "\($0)") }
        if let metalink = file.metalink { rows.append(("metalink", "\(metalink)")) }
        return rows.map { $0.0 + String(repeating: " ", count: 12 - $0.0.count) + $0.1 }.joined(separator: "\n")
    }
}

/// The result of a probe, as a flat JSON object.
struct ProbeRecord: Encodable {
    let v = 1
    let url: String
    let redirects: [String]
    let status: Int
    let name: String
    let bytesTotal: Int64?
    let ranges: Bool
    let validator: String?
    let type: String?
    let digest: String?
    let duplicates: [String]
    let metalink: String?

    init(_ file: RemoteFile) {
        self.url = file.source
        self.redirects = file.redirects
        self.status = file.status
        self.name = file.name
        self.bytesTotal = file.length
        self.ranges = file.supportsRanges
        self.validator = file.validator
        self.type = file.type
        self.digest = file.digest?.description
        self.duplicates = file.duplicates.map(\.description)
        self.metalink = file.metalink?.description
    }
}
