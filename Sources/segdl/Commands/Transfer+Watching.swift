import SegmentedDownload

extension Transfer {
    private enum Ending: Sendable {
        case file(number: Int, TransferFile, TransferSummary.Outcome)
        case signal(CInt)
        /// A task ended without a result: all files ended before a signal came, or no reporter needs ticks.
        case nothing
    }

    /// The maximum number of unfinished downloads in the group.
    ///
    /// 512 gives the group enough to choose from, and a list of a million files needs little more memory than its
    /// requests.
    static let windowLength = 512

    /// Runs all downloads, at most `window` at a time, until they end or a signal pauses them.
    static func watch(
        _ feed: Feed, of group: DownloadGroup, window: Int, _ reporters: [any ProgressReporter],
        _ signals: AsyncStream<SignalSource.Event>, into summary: inout TransferSummary
    ) async {
        var feed = feed
        var summed = summary
        await withTaskGroup(of: Ending.self) { tasks in
            tasks.addTask { await Self.apply(signals, reporters).map { .signal($0) } ?? .nothing }
            tasks.addTask {
                await Self.tick(reporters.filter(\.isTicking))
                return .nothing
            }
            var unfinished = 0
            repeat {
                while summed.signal == nil, unfinished < window, let given = feed.next() {
                    switch given.download {
                    case .success(let download):
                        // Subscribe before the task runs: a small file may be complete by then.
                        let events = download.events
                        let file = TransferFile(download)
                        for reporter in reporters { reporter.begin(file, segments: { await download.segments }) }
                        tasks.addTask { await Self.forward(events, of: download, given.number, to: reporters) }
                        unfinished += 1
                    case .failure(let error):
                        let file = TransferFile(refused: given.request)
                        for reporter in reporters { reporter.report(.failed(error, DownloadProgress()), of: file) }
                        summed.note(.failed(error), of: file, number: given.number)
                    }
                }
                guard unfinished > 0, let ending = await tasks.next() else { break }
                switch ending {
                case .file(let number, let file, let outcome):
                    summed.note(outcome, of: file, number: number)
                    unfinished -= 1
                case .signal(let number):
                    summed.signal = number
                    // In this loop, so that no download is added meanwhile.
                    await group.pauseAll()
                case .nothing: break
                }
            } while true
            tasks.cancelAll()
            for await case .signal(let number) in tasks { summed.signal = number }
        }
        summary = summed
    }

    private static func forward(
        _ events: AsyncStream<DownloadEvent>, of download: Download, _ number: Int, to reporters: [any ProgressReporter]
    ) async -> Ending {
        var file = TransferFile(download)
        for await event in events {
            file.path = download.path.string
            if case .started(let start) = event { file.url = start.url }
            file.state = download.state
            for reporter in reporters { reporter.report(event, of: file) }
            if let outcome = TransferSummary.Outcome(event) { return .file(number: number, file, outcome) }
        }
        let error = DownloadError(.internal, "the download ended without a final event")
        return .file(number: number, file, .failed(error))
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
