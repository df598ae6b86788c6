import Synchronization

/// How large a new connection's receive buffer is: large while connections are few, for each is paid in memory.
///
/// Every buffer handed up costs a change of threads; the figures are in `Design.md`.
final class ReceiveBuffers: Sendable {
    /// 1 MiB: from here on a larger one saves no more time.
    static let lengthMax = 1 << 20

    /// 6 MiB: what all buffers may take together, as long as each has its minimum. Memory holds each about twice: one is
    /// being filled while another is written.
    static let totalMax = 6 << 20

    /// 128 KiB: with less, the calls cost more than the copying.
    static let lengthMin = 128 << 10

    /// Decryption holds the same bytes several times over, and gains little from more at once.
    static let copiesTLS = 8

    private let lengthMax: Int
    private let openCount = Mutex(0)

    /// - Parameter lengthMax: no buffer is larger: where a rate is limited, a large one would come in jerks.
    init(lengthMax: Int = ReceiveBuffers.lengthMax) {
        self.lengthMax = lengthMax
    }

    /// The length in bytes of one more connection's buffer.
    func take(isTLS: Bool) -> Int {
        let count = self.openCount.withLock { count in
            count += 1
            return count
        }
        var length = self.lengthMax
        while length > Self.lengthMin, length * count * (isTLS ? Self.copiesTLS : 1) > Self.totalMax { length /= 2 }
        return length
    }

    /// A connection is closed.
    func giveBack() {
        self.openCount.withLock { $0 -= 1 }
    }
}
