import Synchronization

/// Chooses the length of receive buffers: large while there are few connections.
///
/// Each buffer passed up costs a thread switch; `Design.md` has the measurements.
final class ReceiveBuffers: Sendable {
    /// 1 MiB: a larger buffer is not faster.
    static let lengthMax = 1 << 20

    /// 2 MiB: the total length of all buffers, unless each has its minimum already. Twice that is in memory: one buffer
    /// is filled while another is written.
    static let totalMax = 2 << 20

    /// 128 KiB: below this the calls cost more than the copying.
    static let lengthMin = 128 << 10

    /// 8: decryption holds the same bytes several times and gains little from longer buffers.
    static let copiesTLS = 8

    /// 16 KiB: a shorter buffer costs more calls than it helps, and cannot hold a whole TLS record.
    static let lengthLeast = 16 << 10

    /// The number of chunks in memory for one connection: the chunk being written and the next one, and with TLS the
    /// bytes that the next one is decrypted from.
    private static func chunksHeld(isTLS: Bool) -> Int { isTLS ? 3 : 2 }

    /// 17 KiB: the longest TLS record with its frame. A record may be split between two chunks, so each chunk may be
    /// longer by this much.
    private static let recordLength = 17 << 10

    private struct State {
        var openCount = 0
        var limits = SharedReceiveLimits()
    }

    private let state = Mutex(State())
    // Read for every buffer, by the event loops' threads.
    private let lengthPlain = Atomic(ReceiveBuffers.lengthMax)
    private let lengthTLS = Atomic(ReceiveBuffers.lengthMax)

    /// Sets an owner's limit; `nil` removes it. It also applies to open connections.
    func update(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {
        self.state.withLock { state in
            state.limits.update(limits, for: owner)
            let strictest = state.limits.strictest
            self.lengthPlain.store(Self.length(within: strictest, isTLS: false), ordering: .relaxed)
            self.lengthTLS.store(Self.length(within: strictest, isTLS: true), ordering: .relaxed)
        }
    }

    /// Rounded down to a power of two, because the allocator uses only such capacities.
    private static func length(within limits: ReceiveLimits, isTLS: Bool) -> Int {
        let share = limits.memory.map { $0 / Self.chunksHeld(isTLS: isTLS) - (isTLS ? Self.recordLength : 0) }
        let wanted = [share, limits.chunkLength].compactMap { $0 }.min() ?? Self.lengthMax
        let length = min(max(wanted, Self.lengthLeast), Self.lengthMax)
        return 1 << (Int.bitWidth - 1 - length.leadingZeroBitCount)
    }

    /// The maximum length of a buffer at present.
    func lengthAllowed(isTLS: Bool) -> Int {
        isTLS ? self.lengthTLS.load(ordering: .relaxed) : self.lengthPlain.load(ordering: .relaxed)
    }

    /// Creates the allocator for one more connection.
    func take(isTLS: Bool) -> ReceiveAllocator {
        let count = self.state.withLock { state in
            state.openCount += 1
            return state.openCount
        }
        var length = Self.lengthMax
        while length > Self.lengthMin, length * count * (isTLS ? Self.copiesTLS : 1) > Self.totalMax { length /= 2 }
        return ReceiveAllocator(length: length) { self.lengthAllowed(isTLS: isTLS) }
    }

    /// Records that a connection was closed.
    func giveBack() {
        self.state.withLock { $0.openCount -= 1 }
    }
}
