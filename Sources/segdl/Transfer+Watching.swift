import SegmentedDownload

extension Transfer {
    private enum Ending: Sendable {
        case file(Int, TransferSummary.Outcome)
        case signal(CInt)
        /// All files ended before any signal came.
        case unsignalled
    }

    /// Waits for every download's end, and for a signal that brings it about.
    static func watch(
        _ downloads: [(Download, AsyncStream<DownloadEvent>)], of group: DownloadGroup,
        _ reporters: [any ProgressReporter], _ signals: AsyncStream<SignalSource.Event>
    ) async -> (files: [(file: TransferFile, outcome: TransferSummary.Outcome)], signal: CInt?) {
        await withTaskGroup(of: Ending.self) { tasks in
            for reporter in reporters { reporter.begin(downloads.map { Self.file($0.0) }) }
            for (index, (download, events)) in downloads.enumerated() {
                tasks.addTask { .file(index, await Self.forward(events, of: download, to: reporters)) }
            }
            tasks.addTask { await Self.obey(signals, group, reporters).map { .signal($0) } ?? .unsignalled }
            var outcomes: [Int: TransferSummary.Outcome] = [:]
            var signal: CInt?
            for await ending in tasks {
                switch ending {
                case .file(let index, let outcome): outcomes[index] = outcome
                case .signal(let number): signal = number
                case .unsignalled: break
                }
                if outcomes.count == downloads.count { tasks.cancelAll() }
            }
            let files = downloads.enumerated().map { index, entry in
                (file: Self.file(entry.0), outcome: outcomes[index] ?? .paused)
            }
            return (files, signal)
        }
    }

    private static func forward(
        _ events: AsyncStream<DownloadEvent>, of download: Download, to reporters: [any ProgressReporter]
    ) async -> TransferSummary.Outcome {
        for await event in events {
            let file = Self.file(download)
            for reporter in reporters { reporter.report(event, of: file) }
            switch event {
            case .completed(let result): return .completed(result)
            case .failed(let error, _): return .failed(error)
            case .paused: return .paused
            case .cancelled: return .failed(DownloadError(.internal, "the download was cancelled"))
            case .started, .progress, .segment, .retrying, .checkpoint, .note, .state: continue
            }
        }
        return .failed(DownloadError(.internal, "the download ended without saying how"))
    }

    private static func file(_ download: Download) -> TransferFile {
        TransferFile(id: download.id, path: download.path)
    }

    /// Pauses all at the first signal; returns which one it was.
    private static func obey(
        _ events: AsyncStream<SignalSource.Event>, _ group: DownloadGroup, _ reporters: [any ProgressReporter]
    ) async -> CInt? {
        for await event in events {
            switch event {
            case .resize:
                for reporter in reporters { reporter.redraw() }
            case .stop(let number):
                await group.pauseAll()
                return number
            }
        }
        return nil
    }
}
