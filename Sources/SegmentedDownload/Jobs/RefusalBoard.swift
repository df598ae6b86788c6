import SegmentedDownloadCore
import Synchronization

/// A group's view of the shared refusals: what other processes wrote since it last looked, in the time of the engine's clock.
final class RefusalBoard: Sendable {
    private struct State {
        /// The table as it was last read.
        var bytes: [UInt8] = []
        /// The refusals that are the group's own or were reported to it, in the time of ``RefusalFile/now``.
        var known: [HostNotice.Subject: HostNotice] = [:]
    }

    private let file: RefusalFile
    private let state = Mutex(State())

    init(_ file: RefusalFile) { self.file = file }

    /// The refusals of other processes that were not reported before. One system call if nothing has changed.
    func news(now: Duration) -> [HostNotice] {
        let bytes = self.file.read()
        return self.state.withLock { state in
            guard bytes != state.bytes else { return [] }
            state.bytes = bytes
            let machineNow = RefusalFile.now
            state.known = state.known.filter { $0.value.until > machineNow }
            return self.file.table(bytes).notices.compactMap { refusal in
                if let known = state.known[refusal.subject], !refusal.succeeds(known) { return nil }
                state.known[refusal.subject] = refusal
                return HostNotice(refusal.kind, host: refusal.host, until: now + (refusal.until - machineNow))
            }
        }
    }

    /// Lets other processes know of a refusal. Its time is that of the engine's clock, as is `now`.
    func share(_ refusal: HostNotice, now: Duration) {
        let notice = HostNotice(refusal.kind, host: refusal.host, until: RefusalFile.now + (refusal.until - now))
        self.state.withLock { $0.known[notice.subject] = notice }
        self.file.write(notice)
    }
}
