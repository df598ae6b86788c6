import SegmentedDownload
import Synchronization

extension Transfer {
    /// A file of the run whose download has not ended.
    private struct Unfinished {
        var file: TransferFile
        /// Its places in the run: several if a list names the same download in several ways.
        var numbers: [Int] = []
    }

    /// The signal that stops the run.
    private final class Stop: Sendable {
        private let number = Mutex<CInt?>(nil)

        var signal: CInt? {
            get { self.number.withLock { $0 } }
            set { self.number.withLock { $0 = newValue } }
        }
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
        _ feed: Feed<some FileSource>, of group: DownloadGroup, _ events: AsyncStream<DownloadGroup.Event>, window: Int,
        _ reporters: [any ProgressReporter], _ signals: AsyncStream<SignalSource.Event>,
        isSuperseded: @Sendable () -> Bool, into summary: inout TransferSummary
    ) async {
        var feed = feed
        var summed = summary
        let stop = Stop()
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                guard let number = await Self.apply(signals, reporters) else { return }
                stop.signal = number
                await group.pauseAll()
            }
            tasks.addTask { await Self.tick(reporters.filter(\.isTicking)) }
            var unfinished: [Download.ID: Unfinished] = [:]
            // The group returns a download that has failed instead of adding it again, and has no further event of it.
            var failed: [Download.ID: TransferSummary.Outcome] = [:]
            var events = events.makeAsyncIterator()
            while true {
                while unfinished.count < window, stop.signal == nil, let step = feed.next() {
                    guard case .given(let given) = step else { continue }
                    summed.begin()
                    switch given.download {
                    case .success(let download):
                        let file = TransferFile(download)
                        for reporter in reporters { reporter.begin(file, segments: { await download.segments }) }
                        if let outcome = failed[download.id] {
                            summed.note(outcome, of: file, number: given.number)
                            await feed.files.note(outcome, number: given.number)
                        } else {
                            unfinished[download.id, default: Unfinished(file: file)].numbers.append(given.number)
                        }
                        // The others may have been paused just before it was added.
                        if stop.signal != nil { await download.pause() }
                    case .failure(let error):
                        let file = given.file
                        for reporter in reporters { reporter.report(.failed(error, DownloadProgress()), of: file) }
                        summed.note(.failed(error), of: file, number: given.number)
                        await feed.files.note(.failed(error), number: given.number)
                    }
                }
                guard !unfinished.isEmpty, let event = await events.next() else { break }
                guard case .download(let download, var event) = event, var entry = unfinished[download.id] else {
                    continue
                }
                if case .failed(_, let progress) = event, isSuperseded() { event = .paused(progress) }
                Self.report(event, of: download, &entry.file, to: reporters)
                unfinished[download.id] = entry
                guard let outcome = TransferSummary.Outcome(event) else { continue }
                unfinished[download.id] = nil
                if case .failed = outcome {
                    // Of a list without end, millions may fail. A failed download takes 8 KiB.
                    if feed.files.count == nil {
                        await group.remove(download)
                    } else {
                        failed[download.id] = outcome
                    }
                }
                for number in entry.numbers {
                    summed.note(outcome, of: entry.file, number: number)
                    await feed.files.note(outcome, number: number)
                }
            }
            // The sequence ends early only if the group does.
            for entry in unfinished.values {
                let error = DownloadError(.internal, "the download ended without a final event")
                for number in entry.numbers { summed.note(.failed(error), of: entry.file, number: number) }
            }
            tasks.cancelAll()
        }
        summed.signal = stop.signal
        summed.hasRest = stop.signal != nil && feed.hasRest
        summary = summed
    }

    private static func report(
        _ event: DownloadEvent, of download: Download, _ file: inout TransferFile,
        to reporters: [any ProgressReporter]
    ) {
        switch event {
        // The path changes only before a download is started, and when its file is put in place.
        case .progress, .segment, .checkpoint: break
        case .started(let start):
            file.url = start.url
            file.path = download.path.string
        case .retrying, .note, .state, .paused, .completed, .failed, .cancelled:
            file.path = download.path.string
        }
        file.state = download.state
        for reporter in reporters { reporter.report(event, of: file) }
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
