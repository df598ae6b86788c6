import SegmentedDownload
import SegmentedDownloadCore

/// The outcome of a run, as seen from outside.
final class Outcome: @unchecked Sendable {
    // Unchecked: the whole simulation runs on one thread.
    var isOver = false
    var endings: [String] = []
    var error: (any Error)?
    var log: [String] = []
    let isLogged: Bool

    init(isLogged: Bool) { self.isLogged = isLogged }
}

/// One run of the command: a group of downloads, some of them paused and resumed.
struct Session: Sendable {
    let client: DownloadClient
    let requests: [DownloadRequest]
    let clock: SimulatedClock
    let pauses: [Duration]
    let changes: [(after: Duration, limits: DownloadLimits)]
    let checker: Checker

    func run(_ outcome: Outcome) async {
        defer { outcome.isOver = true }
        do {
            try await self.client.withGroup { group in
                let downloads = try self.requests.map { try group.add($0) }
                await withTaskGroup(of: Void.self) { tasks in
                    // Listens with or without a log: another listener would change the run.
                    for (file, download) in downloads.enumerated() {
                        tasks.addTask { await self.log(download, of: file, outcome) }
                    }
                    for pause in self.pauses {
                        tasks.addTask { await self.pauseAndResume(group, downloads, after: pause, outcome) }
                    }
                    tasks.addTask { await self.change(group) }
                    await tasks.waitForAll()
                }
                for (file, download) in downloads.enumerated() {
                    // A crash cancels the task.
                    let end = (try? await download.rest()) ?? .cancelled
                    outcome.endings.append(Self.word(end))
                    if case .completed(let result) = end {
                        self.checker.noteCompleted(file: file, isConfirmed: result.verifiedBy != .none)
                    }
                    if outcome.isLogged {
                        outcome.log.append("\(self.clock.now) \(download.id.rawValue) rests: \(end)")
                    }
                }
            }
        } catch {
            outcome.endings.append("thrown \(error)")
        }
    }

    private func log(_ download: Download, of file: Int, _ outcome: Outcome) async {
        for await event in download.events {
            switch event {
            case .note(let text): self.checker.handle(text, file: file)
            case .failed, .paused: self.checker.forgive(file: file)
            case .completed(let result): self.checker.compare(result.digests, of: file)
            case .started(let start): if start.resumedFrom == 0 { self.checker.ledger.beginAnew(file) }
            case .state, .progress, .segment, .retrying, .checkpoint, .cancelled: break
            }
            guard outcome.isLogged else { continue }
            if case .progress = event { continue }
            outcome.log.append("\(self.clock.now) \(download.id.rawValue): \(event)")
        }
    }

    private func change(_ group: DownloadGroup) async {
        for change in self.changes {
            guard (try? await self.clock.sleep(until: self.clock.now + change.after)) != nil else { return }
            self.checker.hold(to: change.limits)
            group.update(change.limits)
            for (number, download) in group.downloads.enumerated() {
                download.update(priority: Double(change.limits.connections + number) / 16)
            }
        }
    }

    private func pauseAndResume(
        _ group: DownloadGroup, _ downloads: [Download], after time: Duration, _ outcome: Outcome
    ) async {
        guard (try? await self.clock.sleep(until: self.clock.now + time)) != nil else { return }
        self.checker.checkPaused(await group.pauseAll())
        group.resumeAll()
        // The events of a download end when it is paused.
        await withTaskGroup(of: Void.self) { tasks in
            for (file, download) in downloads.enumerated() {
                tasks.addTask { await self.log(download, of: file, outcome) }
            }
            await tasks.waitForAll()
        }
    }

    private static func word(_ event: DownloadEvent) -> String {
        switch event {
        case .completed(let result): result.wasAlreadyComplete ? "already" : "completed"
        case .failed(let error, _): error.status == SimulatedNetwork.crowdStatus ? Checker.crowd : error.code.rawValue
        case .paused: "paused"
        case .cancelled, .started, .progress, .segment, .retrying, .checkpoint, .note, .state: "cancelled"
        }
    }
}
