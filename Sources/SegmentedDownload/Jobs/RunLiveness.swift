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
    /// of a shared file system is not kept busy with them.
    static func reportInterval(of shard: Shard) -> Duration { .seconds(max(10, shard.count / 100)) }

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
        for name in names {
            var finding = self.finding(name.shard)
            if case .uncertain(let status, let modified) = finding {
                waiting(
                    "\(self.describe(name.shard)) may still run on \(status.host.printable); waiting until it has not reported for some time"
                )
                try await self.wait(for: name.shard)
                finding = self.finding(name.shard)
                // No report has come since.
                if case .uncertain(_, modified) = finding { finding = .ended }
            }
            switch finding {
            case .ended: break
            case .uncertain(let status, _), .alive(let status):
                throw self.failure(status, of: name.shard, for: shard)
            }
        }
    }

    private func wait(for shard: Shard) async throws(DownloadError) {
        do {
            try await self.clock.sleep(
                until: self.clock.now + Self.reportInterval(of: shard) * Self.reportsMissedMax)
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
