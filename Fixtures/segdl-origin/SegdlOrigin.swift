public import ArgumentParser
public import Origin

#if canImport(Darwin)
    import Darwin
#else
    import Glibc
#endif

/// The fixture origin as a process of its own, for demos and benchmarks.
@main
struct SegdlOrigin: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segdl-origin",
        abstract: "Serves made-up bytes over HTTP, well or badly, as the URL asks.",
        discussion: "For example: /1G/file.bin?rate=10M&limit=4&retry-after=1"
    )

    @Option(help: "An address to listen on; may be repeated.")
    var host: [String] = ["127.0.0.1"]

    @Option(help: "The port; 0 lets the system choose.")
    var port = 0

    @Flag(help: "Serve https.")
    var tls = false

    @Option(help: "The certificate to show: \(Origin.Certificate.allCases.map(\.rawValue).joined(separator: ", ")).")
    var certificate = Origin.Certificate.good

    @Option(help: "Write the certificate authority that signed it to a file.")
    var certificateAuthorityOut: String?

    @Option(help: "Event loops.")
    var loops = 1

    @Flag(help: "Print a summary as one line of JSON to standard error at the end.")
    var log = false

    func validate() throws {
        guard self.loops > 0 else { throw ValidationError("--loops is at least 1.") }
        guard (0...65_535).contains(self.port) else { throw ValidationError("--port is at most 65535.") }
    }

    func run() async throws {
        if let path = self.certificateAuthorityOut { try Self.save(Origin.certificateAuthorityPEM + "\n", to: path) }
        let signals = ExitSignals()
        let configuration = Origin.Configuration(
            hosts: self.host,
            port: self.port,
            tls: self.tls,
            certificate: self.certificate,
            eventLoops: self.loops
        )
        try await withOrigin(configuration) { origin in
            print("listening \(origin.url(""))")
            fflush(nil)
            await signals.first()
            if self.log { Self.report(Self.summary(of: origin.log.snapshot()) + "\n") }
        }
    }

    private static func summary(of log: OriginLog.Snapshot) -> String {
        let fields: [(String, Int64)] = [
            ("requests", Int64(log.requests.count)),
            ("requestsPeak", Int64(log.requestsPeak)),
            ("connections", Int64(log.connectionsCount)),
            ("connectionsPeak", Int64(log.connectionsPeak)),
            ("rejected", Int64(log.rejected)),
            ("bytesSent", log.bytesSent),
        ]
        return "{" + fields.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}"
    }

    private static func save(_ text: String, to path: String) throws {
        guard let file = fopen(path, "w") else { throw ValidationError("\(path) cannot be written (errno \(errno)).") }
        defer { fclose(file) }
        fputs(text, file)
    }

    private static func report(_ text: String) {
        var text = text
        text.withUTF8 { bytes in _ = write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
    }
}

extension Origin.Certificate: ExpressibleByArgument {}
