import NIOCore
import Synchronization

/// Spaces sends so that they keep to a rate, for one connection or for several that share it.
///
/// Each sender reserves its next chunk and gets the time for it: when all chunks reserved before have been sent at the
/// rate.
final class Pacer: Sendable {
    let rate: Int64
    private let next: Mutex<NIODeadline>

    /// How late a sender may be and still catch up: a busy event loop wakes late, but a reader that paused gets no
    /// burst.
    private static let slack = TimeAmount.milliseconds(50)

    init(rate: Int64, now: NIODeadline) {
        self.rate = rate
        self.next = Mutex(now)
    }

    /// 20 ms of data: smooth enough, and 50 wake-ups a second per connection.
    var chunkMax: Int { max(1, Int(clamping: self.rate / 50)) }

    func reserve(_ count: Int, at now: NIODeadline) -> NIODeadline {
        self.next.withLock { next in
            let start = max(next, now - Self.slack)
            next = start + .nanoseconds(Int64(count) * 1_000_000_000 / self.rate)
            return start
        }
    }
}
