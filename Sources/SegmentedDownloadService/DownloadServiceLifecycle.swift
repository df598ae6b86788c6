public import SegmentedDownload
public import ServiceLifecycle

/// A ``DownloadService`` in a service group of swift-service-lifecycle. A graceful shutdown pauses its downloads.
///
/// Let the group shut it down after the services that add downloads: list it before them.
public struct DownloadServiceLifecycle: Service {
    private let service: DownloadService

    public init(_ service: DownloadService) {
        self.service = service
    }

    /// Runs the service until the group shuts down.
    ///
    /// - Throws: `DownloadError`, as ``DownloadService/run()`` does.
    public func run() async throws(DownloadError) {
        let result = await withGracefulShutdownHandler { () async -> Result<Void, DownloadError> in
            do throws(DownloadError) {
                return .success(try await self.service.run())
            } catch {
                return .failure(error)
            }
        } onGracefulShutdown: {
            self.service.shutdown()
        }
        try result.get()
    }
}
