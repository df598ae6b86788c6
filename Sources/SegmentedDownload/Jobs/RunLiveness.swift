import SegmentedDownloadCore

/// Finds out whether another run would fetch the same entries at the same time.
///
/// On the same machine the lock of the run's file decides. A run on another machine counts as alive if that lock is
/// held, which some shared file systems show, or while its status is renewed. Ages are measured with the file system's
/// clock, because the clocks of machines differ.
struct RunLiveness {
    /// How often a run reports.
    ///
    /// 10 s for up to 1000 tasks. Beyond that all tasks together write 100 reports a second, so that the metadata server
    /// of a shared file system is not kept busy with them, but each at least every 30 s: the successor of a task that died
    /// waits for three of its reports. With 10,000 tasks that would be five minutes, in which a job of ten minutes ends.
    static func reportInterval(of shard: Shard) -> Duration { .seconds(min(max(10, shard.count / 100), 30)) }

    /// 3: a run that has missed so many reports has ended.
    static let reportsMissedMax = 3

    let job: JobDirectory
    let host: String
    let clock: any EngineClock

    private enum Finding {
        case ended
        /// Another machine runs it, or did until recently.
        case uncertain(ShardStatus, modified: Int64)
        case alive(ShardStatus)
    }

    func check(_ shard: Shard, waiting: (String) -> Void) async throws(DownloadError) {
        let names = try self.job.names().filter {
            $0.kind == .json && ($0.shard == shard || $0.shard.count != shard.count)
        }
        var uncertain: [(shard: Shard, status: ShardStatus, modified: Int64)] = []
        for name in names {
            switch self.finding(name.shard) {
            case .ended: break
            case .alive(let status): throw self.failure(status, of: name.shard, for: shard)
            case .uncertain(let status, let modified): uncertain.append((name.shard, status, modified))
            }
        }
        guard let first = uncertain.first else { return }
        let others = uncertain.count > 1 ? ", and \(uncertain.count - 1) other tasks elsewhere" : ""
        waiting(
            "\(self.describe(first.shard)) may still run on \(first.status.host.printable)\(others); waiting for a report"
        )
        // Once for all of them: a thousand tasks may have been killed.
        try await self.wait(for: uncertain.map(\.shard))
        for before in uncertain {
            switch self.finding(before.shard) {
            case .ended, .uncertain(_, before.modified): break
            case .alive(let status), .uncertain(let status, _):
                throw self.failure(status, of: before.shard, for: shard)
            }
        }
    }

    private func wait(for shards: [Shard]) async throws(DownloadError) {
        let interval = shards.map { Self.reportInterval(of: $0) }.max() ?? .zero
        do {
            try await self.clock.sleep(until: self.clock.now + interval * Self.reportsMissedMax)
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    private func finding(_ shard: Shard) -> Finding {
        guard let (status, modified) = self.job.status(of: shard), status.state == .running else { return .ended }
        let path = self.job.path(of: JobDirectory.Name(shard, run: status.run, .finished))
        guard let file = try? self.job.storage.open(path, .read) else {
            return status.host == self.host ? .ended : .uncertain(status, modified: modified)
        }
        defer { file.close() }
        switch try? file.tryLock() {
        case .busy: return .alive(status)
        case .taken where status.host == self.host: return .ended
        case .taken, .unsupported, nil: return .uncertain(status, modified: modified)
        }
    }

    private func describe(_ shard: Shard) -> String { "task \(shard) of the job \(self.job.path.printable)" }

    private func failure(_ status: ShardStatus, of other: Shard, for shard: Shard) -> DownloadError {
        let place = "process \(status.process) on \(status.host.printable)"
        guard other != shard else {
            return DownloadError(
                .exists, "\(self.describe(other)) is being run by \(place)",
                hint: "Wait until it ends. The same command then continues")
        }
        return DownloadError(
            .exists,
            "the job \(self.job.path.printable) is being run with \(other.count) task\(other.count == 1 ? "" : "s") (\(other) by \(place))",
            hint: "Stop all of them before you continue with \(shard.count)")
    }
}
