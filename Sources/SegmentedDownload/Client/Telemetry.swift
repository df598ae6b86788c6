import CoreMetrics
import Logging
import SegmentedDownloadCore

/// Logs and counts the events of a group's downloads. The article Servers lists the metrics.
struct Telemetry: Sendable {
    private let logger: Logger?
    private let metrics: (any MetricsFactory)?

    /// Nil if the configuration names neither.
    init?(_ configuration: DownloadConfiguration) {
        guard configuration.logger != nil || configuration.metrics != nil else { return nil }
        self.logger = configuration.logger
        self.metrics = configuration.metrics
    }

    func follow(_ events: AsyncStream<DownloadGroup.Event>) async {
        for await case .download(let download, let event) in events {
            self.log(event, of: download)
            self.count(event)
        }
    }

    // MARK: Logging

    private func log(_ event: DownloadEvent, of download: Download) {
        guard var logger = self.logger else { return }
        logger[metadataKey: "download"] = "\(download.id)"
        logger[metadataKey: "url"] = "\(download.request.source)"
        switch event {
        case .started(let started):
            var metadata: Logger.Metadata = [
                "path": "\(started.path)", "resumed_from": "\(started.resumedFrom)",
                "segmented": "\(started.isSegmented)",
            ]
            if let total = started.bytesTotal { metadata["bytes_total"] = "\(total)" }
            logger.info("download started", metadata: metadata)
        case .retrying(let error, let attempt, let delay):
            logger.warning(
                "attempt failed",
                metadata: Self.metadata(error).merging(
                    ["attempt": "\(attempt)", "delay": "\(delay.inSeconds)"]) { $1 })
        case .note(let text): logger.notice("download note", metadata: ["note": "\(text)"])
        case .state(let state): logger.debug("download state", metadata: ["state": "\(state)"])
        case .checkpoint(let bytes): logger.debug("download checkpoint", metadata: ["bytes_durable": "\(bytes)"])
        case .paused(let progress):
            logger.info("download paused", metadata: ["bytes_done": "\(progress.bytesDone)"])
        case .completed(let result):
            logger.info(
                "download completed",
                metadata: [
                    "path": "\(result.path)", "bytes": "\(result.bytes)", "bytes_fetched": "\(result.bytesFetched)",
                    "duration": "\(result.duration.inSeconds)", "verified_by": "\(result.verifiedBy)",
                ])
        case .failed(let error, let progress):
            logger.error(
                "download failed",
                metadata: Self.metadata(error).merging(["bytes_done": "\(progress.bytesDone)"]) { $1 })
        case .cancelled: logger.info("download cancelled")
        case .progress, .segment: break
        }
    }

    private static func metadata(_ error: DownloadError) -> Logger.Metadata {
        var metadata: Logger.Metadata = ["code": "\(error.code.rawValue)", "message": "\(error.message)"]
        if let status = error.status { metadata["status"] = "\(status)" }
        if let errno = error.errno { metadata["errno"] = "\(errno)" }
        return metadata
    }

    // MARK: Metrics

    private func count(_ event: DownloadEvent) {
        switch event {
        case .retrying(let error, _, _): self.counter("segdl_retries", ("code", error.code.rawValue))?.increment()
        case .completed(let result):
            self.ended("completed")
            self.counter("segdl_bytes")?.increment(by: result.bytesFetched)
            self.metrics.map { Timer(label: "segdl_duration", factory: $0) }?
                .recordNanoseconds(result.duration.inNanoseconds)
        case .failed(let error, _): self.ended(error.code.rawValue)
        case .paused: self.ended("paused")
        case .cancelled: self.ended("cancelled")
        case .started, .progress, .segment, .checkpoint, .note, .state: break
        }
    }

    private func ended(_ outcome: String) {
        self.counter("segdl_downloads", ("outcome", outcome))?.increment()
    }

    private func counter(_ label: String, _ dimensions: (String, String)...) -> Counter? {
        self.metrics.map { Counter(label: label, dimensions: dimensions, factory: $0) }
    }
}
