import SegmentedDownloadCore
import Synchronization

/// A group's view of the shared notices: what other processes wrote since it last looked, in the time of the engine's clock.
final class NoticeBoard: Sendable {
    private struct State {
        /// The table as it was last read.
        var bytes: [UInt8] = []
        /// The notices that are the group's own or were reported to it, in the time of ``NoticeFile/now``.
        var known: [HostNotice.Subject: HostNotice] = [:]
    }

    private let file: NoticeFile
    private let state = Mutex(State())

    init(_ file: NoticeFile) { self.file = file }

    /// The notices of other processes that were not reported before. One system call if nothing has changed.
    func news(now: Duration) -> [HostNotice] {
        let bytes = self.file.read()
        return self.state.withLock { state in
            guard bytes != state.bytes else { return [] }
            state.bytes = bytes
            let machineNow = NoticeFile.now
            state.known = state.known.filter { $0.value.until > machineNow }
            return self.file.table(bytes).notices.compactMap { notice in
                if let known = state.known[notice.subject], !notice.replaces(known) { return nil }
                state.known[notice.subject] = notice
                return HostNotice(notice.kind, host: notice.host, until: now + (notice.until - machineNow))
            }
        }
    }

    /// Lets other processes read a notice. Its time is that of the engine's clock, as is `now`.
    func post(_ notice: HostNotice, now: Duration) {
        let record = HostNotice(notice.kind, host: notice.host, until: NoticeFile.now + (notice.until - now))
        self.state.withLock { $0.known[record.subject] = record }
        self.file.write(record)
    }
}
