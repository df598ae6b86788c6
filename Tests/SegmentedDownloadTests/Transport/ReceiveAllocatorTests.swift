import NIOCore
import SegmentedDownloadCore
import Synchronization
import Testing

@testable import SegmentedDownload

/// The lengths of a connection's receive buffers, in the pool that the channel keeps them in.
@Suite("Receive buffers of a connection")
struct ReceiveAllocatorTests {
    private static let length = 1 << 20

    /// The capacities of the buffers for a series of reads, each of which is passed on and released.
    private static func capacities(_ count: Int, of pool: inout NIOPooledRecvBufferAllocator) -> [Int] {
        (0..<count).map { _ in
            let (_, capacity) = pool.buffer(allocator: ByteBufferAllocator()) { buffer in
                buffer.writeInteger(UInt8(0))
                return buffer.capacity
            }
            pool.record(actualReadBytes: 1)
            return capacity
        }
    }

    @Test("The first buffer, which the channel copies, is short, and the others are not")
    func first() {
        let allocator = ReceiveAllocator(length: Self.length) { Self.length }
        var pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: allocator)
        #expect(Self.capacities(3, of: &pool) == [16 << 10, Self.length, Self.length])
    }

    @Test("A first buffer is no longer than the limit")
    func limited() {
        let allocator = ReceiveAllocator(length: Self.length) { 4 << 10 }
        var pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: allocator)
        #expect(Self.capacities(2, of: &pool) == [4 << 10, 4 << 10])
    }

    @Test("A lower limit applies to the next buffer")
    func lowered() {
        let limit = Mutex(Self.length)
        let allocator = ReceiveAllocator(length: Self.length) { limit.withLock { $0 } }
        var pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: allocator)
        #expect(Self.capacities(2, of: &pool).last == Self.length)
        limit.withLock { $0 = 64 << 10 }
        #expect(Self.capacities(2, of: &pool) == [64 << 10, 64 << 10])
    }
}
