import Foundation
import Hummingbird
import Logging
import SegmentedDownload
import SegmentedDownloadService
import ServiceLifecycle

/// A server that downloads files on request, and resumes them after a restart.
///
/// Usage: `DownloadServer [DIRECTORY]`. Environment: `DOWNLOADS_DIRECTORY` (default `./downloads`), `HOST` (127.0.0.1)
/// and `PORT` (8080; 0 lets the system choose).
@main
struct DownloadServer {
    static func main() async {
        let logger = Logger(label: "DownloadServer")
        do {
            try await Self.run(logger: logger)
        } catch {
            logger.critical("The server failed", metadata: ["error": "\(error)"])
            exit(1)
        }
    }

    private static func run(logger: Logger) async throws {
        let environment = Environment()
        let host = environment.get("HOST") ?? "127.0.0.1"
        let port = environment.get("PORT") == nil ? 8080 : try environment.require("PORT", as: UInt16.self)
        let given = CommandLine.arguments.dropFirst().first ?? environment.get("DOWNLOADS_DIRECTORY") ?? "downloads"
        // Absolute, because the paths in the queue file must be valid in any working directory.
        let directory = FilePath(URL(fileURLWithPath: given, isDirectory: true).standardizedFileURL.path)

        var downloading = DownloadConfiguration()
        // Answers requests for downloads that are over, which leave the service's list.
        downloading.history.path = directory.appending(".segdl-history")
        let service = DownloadService(downloading, directory: directory)
        let queue = DownloadQueue(of: service, in: directory, logger: logger)

        var application = Application(
            router: Routes(service: service, queue: queue).router,
            configuration: ApplicationConfiguration(address: .hostname(host, port: Int(port))),
            logger: logger
        )
        // No request is answered before all downloads are listed again.
        application.beforeServerStarts { try await queue.restore() }

        // Services shut down in reverse order: first the requests end, then the downloads are paused.
        var configuration = ServiceGroupConfiguration(
            services: [DownloadServiceLifecycle(service), queue, application],
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: logger
        )
        // 20 s: a client that has stopped reading its events delays the shutdown no longer. What was fetched is kept.
        configuration.maximumGracefulShutdownDuration = .seconds(20)
        try await ServiceGroup(configuration: configuration).run()
    }
}
