import SegmentedDownload
import Synchronization

extension Transfer {
    /// A file of the run whose download has not ended.
    private struct Unfinished {
        /// The file's place in the run.
        var number: Int
        var file: TransferFile
    }

    /// The signal that stopped the run; locked while a download is added, so that none is added after the pause that a
    /// signal demands.
    private final class Stop: Sendable {
        let signal = Mutex<CInt?>(nil)
    }

    /// The maximum number of unfinished downloads in the group.
    ///
    /// 512 gives the group enough to choose from, and a list of a million files needs little more memory than its
    /// requests.
    static let windowLength = 512

    /// Runs all downloads, at most `window` at a time, until they end or a signal pauses them.
    ///
    /// - Parameter events: The group's events from before the feed's first download was added.
    static func watch(
        _ feed: Feed, of group: DownloadGroup, _ events: AsyncStream<DownloadGroup.Event>, window: Int,
        _ reporters: [any ProgressReporter], _ signals: AsyncStream<SignalSource.Event>,
        into summary: inout TransferSummary
    ) async {
        var feed = feed
        var summed = summary
        let stop = Stop()
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                guard let number = await Self.apply(signals, reporters) else { return }
                stop.signal.withLock { $0 = number }
                await group.pauseAll()
            }
            tasks.addTask { await Self.tick(reporters.filter(\.isTicking)) }
            var unfinished: [Download.ID: Unfinished] = [:]
            var events = events.makeAsyncIterator()
            while true {
                while unfinished.count < window,
                    let given = stop.signal.withLock({ $0 == nil ? feed.next() : nil })
                {
                    switch given.download {
                    case .success(let download):
                        let file = TransferFile(download)
                        for reporter in reporters { reporter.begin(file, segments: { await download.segments }) }
                        unfinished[download.id] = Unfinished(number: given.number, file: file)
                    case .failure(let error):
                        let file = TransferFile(refused: given.request)
                        for reporter in reporters { reporter.report(.failed(error, DownloadProgress()), of: file) }
                        summed.note(.failed(error), of: file, number: given.number)
                    }
                }
                guard !unfinished.isEmpty, let event = await events.next() else { break }
                if case .download(let download, let event) = event {
                    Self.report(event, of: download, &unfinished, reporters, &summed)
                }
            }
            // The sequence ends early only if the group does.
            for entry in unfinished.values {
                let error = DownloadError(.internal, "the download ended without a final event")
                summed.note(.failed(error), of: entry.file, number: entry.number)
            }
            tasks.cancelAll()
        }
        summed.signal = stop.signal.withLock { $0 }
        summary = summed
    }

    private static func report(
        _ event: DownloadEvent, of download: Download, _ unfinished: inout [Download.ID: Unfinished],
        _ reporters: [any ProgressReporter], _ summary: inout TransferSummary
    ) {
        guard var entry = unfinished[download.id] else { return }
        entry.file.path = download.path.string
        if case .started(let start) = event { entry.file.url = start.url }
        entry.file.state = download.state
        for reporter in reporters { reporter.report(event, of: entry.file) }
        if let outcome = TransferSummary.Outcome(event) {
            unfinished[download.id] = nil
            summary.note(outcome, of: entry.file, number: entry.number)
        } else {
            unfinished[download.id] = entry
        }
    }

    /// Calls ``ProgressReporter/tick()`` ten times a second until cancelled.
    private static func tick(_ reporters: [any ProgressReporter]) async {
        guard !reporters.isEmpty else { return }
        while (try? await Task.sleep(for: .milliseconds(100))) != nil {
            for reporter in reporters { await reporter.tick() }
        }
    }

    /// Waits for the first signal to stop, and returns its number. Redraws when the terminal is resized.
    private static func apply(
        _ events: AsyncStream<SignalSource.Event>, _ reporters: [any ProgressReporter]
    ) async -> CInt? {
        for await event in events {
            switch event {
            case .resize:
                for reporter in reporters { reporter.redraw() }
            case .stop(let number):
                return number
            }
        }
        return nil
    }
}
