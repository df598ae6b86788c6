import NIOCore
import Synchronization

/// Allocates a connection's receive buffers, of a fixed length or shorter while a limit requires it.
///
/// Workaround: swift-nio's channel reuses its buffer and never shortens it. Only if no size is given does it request a
/// new buffer, so no size is given while the limit is below the length of the reused buffer. No upstream issue yet; the
/// pool of https://github.com/apple/swift-nio/pull/2362 would have to replace a buffer that is longer than the next
/// size.
final class ReceiveAllocator: RecvByteBufferAllocator {
    private let length: Int
    private let lengthAllowed: @Sendable () -> Int
    // Used only by the channel's thread.
    private let next = Atomic(0)
    private let kept = Atomic(0)

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
        allocator.buffer(capacity: self.next.load(ordering: .relaxed))
    }

    /// Always `true` (may grow); otherwise the channel would reuse a buffer that is too long.
    func record(actualReadBytes: Int) -> Bool { true }
}
