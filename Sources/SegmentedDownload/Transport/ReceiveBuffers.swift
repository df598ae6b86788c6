import NIOCore
import Synchronization

/// How large a connection's receive buffers are: large while connections are few, for each is paid in memory.
///
/// Every buffer handed up costs a change of threads; the figures are in `Design.md`.
final class ReceiveBuffers: Sendable {
    /// 1 MiB: from here on a larger one saves no more time.
    static let lengthMax = 1 << 20

    /// 2 MiB: what all buffers may take together, as long as each has its minimum. Memory holds each about twice: one is
    /// being filled while another is written.
    static let totalMax = 2 << 20

    /// 128 KiB: with less, the calls cost more than the copying.
    static let lengthMin = 128 << 10

    /// Decryption holds the same bytes several times over, and gains little from more at once.
    static let copiesTLS = 8

    /// 16 KiB: a smaller one costs more calls than it smooths, and holds not even a whole record of TLS.
    static let lengthLeast = 16 << 10

    /// While a piece is written the next one comes, and the client asks for no more before that one is taken. Where there is
    /// encryption it is decrypted from a buffer as long.
    private static func piecesHeld(isTLS: Bool) -> Int { isTLS ? 3 : 2 }

    /// The longest record of TLS with its frame, of which the beginning may have come with one piece and the end with the next: so
    /// much longer each of them may be.
    private static let recordLength = 17 << 10

    private struct State {
        var openCount = 0
        var limits = SharedReceiveLimits()
    }

    private let state = Mutex(State())
    // Read for every buffer, by the thread that reads all sockets.
    private let lengthPlain = Atomic(ReceiveBuffers.lengthMax)
    private let lengthTLS = Atomic(ReceiveBuffers.lengthMax)

    /// Holds all connections, also those that are open, to another limit.
    func update(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {
        self.state.withLock { state in
            state.limits.update(limits, for: owner)
            let strictest = state.limits.strictest
            self.lengthPlain.store(Self.length(within: strictest, isTLS: false), ordering: .relaxed)
            self.lengthTLS.store(Self.length(within: strictest, isTLS: true), ordering: .relaxed)
        }
    }

    /// A power of two, for no other capacity is ever allocated.
    private static func length(within limits: ReceiveLimits, isTLS: Bool) -> Int {
        let share = limits.memory.map { $0 / Self.piecesHeld(isTLS: isTLS) - (isTLS ? Self.recordLength : 0) }
        let wanted = [share, limits.pieceLength].compactMap { $0 }.min() ?? Self.lengthMax
        let length = min(max(wanted, Self.lengthLeast), Self.lengthMax)
        return 1 << (Int.bitWidth - 1 - length.leadingZeroBitCount)
    }

    /// The longest buffer there may be now.
    func lengthAllowed(isTLS: Bool) -> Int {
        isTLS ? self.lengthTLS.load(ordering: .relaxed) : self.lengthPlain.load(ordering: .relaxed)
    }

    /// The buffers of one more connection.
    func take(isTLS: Bool) -> ReceiveAllocator {
        let count = self.state.withLock { state in
            state.openCount += 1
            return state.openCount
        }
        var length = Self.lengthMax
        while length > Self.lengthMin, length * count * (isTLS ? Self.copiesTLS : 1) > Self.totalMax { length /= 2 }
        return ReceiveAllocator(length: length) { self.lengthAllowed(isTLS: isTLS) }
    }

    /// A connection is closed.
    func giveBack() {
        self.state.withLock { $0.openCount -= 1 }
    }
}

/// Makes one connection's receive buffers, of the length it was given when it was opened, or shorter while that is wanted.
///
/// The channel keeps one buffer to use it again, and never makes it shorter: once a shorter one is wanted than it has kept, it must
/// not be told a size, for only then it asks for a buffer each time.
final class ReceiveAllocator: RecvByteBufferAllocator {
    private let length: Int
    private let lengthAllowed: @Sendable () -> Int
    // Used by the channel's thread only.
    private let next = Atomic(0)
    private let kept = Atomic(0)

    init(length: Int, lengthAllowed: @escaping @Sendable () -> Int) {
        self.length = length
        self.lengthAllowed = lengthAllowed
    }

    /// Called before every read.
    func nextBufferSize() -> Int? {
        let next = min(self.length, self.lengthAllowed())
        self.next.store(next, ordering: .relaxed)
        guard next >= self.kept.load(ordering: .relaxed) else { return nil }
        self.kept.store(next, ordering: .relaxed)
        return next
    }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        allocator.buffer(capacity: self.next.load(ordering: .relaxed))
    }

    /// Always "may grow": a buffer that is too long would be used again otherwise.
    func record(actualReadBytes: Int) -> Bool { true }
}
