import NIOCore
import Synchronization

/// Allocates a connection's receive buffers, of a fixed length or shorter while a limit requires it.
///
/// Workaround: swift-nio's channel reuses its buffer and never shortens it. Only if no size is given does it request a
/// new buffer, so no size is given while the limit is below the length of the reused buffer. No upstream issue yet; the
/// pool of https://github.com/apple/swift-nio/pull/2362 would have to replace a buffer that is longer than the next
/// size.
///
/// Workaround: swift-nio's channel copies its first buffer, all 1 MiB of it, before it reads into it, because
/// `NIOPooledRecvBufferAllocator` still has another reference to it. So the first buffer is short; a longer one replaces
/// it. No upstream issue yet; `_allocateNewBuffer` would have to store the buffer after `body` has filled it. A
/// connection with TLS has a buffer already when this allocator comes; there it is only the first new one.
final class ReceiveAllocator: RecvByteBufferAllocator {
    /// 16 KiB: holds most heads, and is copied in microseconds.
    private static let lengthFirst = 16 << 10

    private let length: Int
    private let lengthAllowed: @Sendable () -> Int
    // Used only by the channel's thread.
    private let next = Atomic(0)
    private let kept = Atomic(0)
    private let isFirstRequested = Atomic(false)

    init(length: Int, lengthAllowed: @escaping @Sendable () -> Int) {
        self.length = length
        self.lengthAllowed = lengthAllowed
    }

    /// The size of the next buffer; `nil` makes the channel request one. Called before every read.
    func nextBufferSize() -> Int? {
        let next = min(self.length, self.lengthAllowed())
        self.next.store(next, ordering: .relaxed)
        guard next >= self.kept.load(ordering: .relaxed) else { return nil }
        self.kept.store(next, ordering: .relaxed)
        return next
    }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        let next = self.next.load(ordering: .relaxed)
        let isFirst = !self.isFirstRequested.exchange(true, ordering: .relaxed)
        return allocator.buffer(capacity: isFirst ? min(next, Self.lengthFirst) : next)
    }

    /// Always `true` (may grow); otherwise the channel would reuse a buffer that is too long.
    func record(actualReadBytes: Int) -> Bool { true }
}
