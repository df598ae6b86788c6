import Synchronization
import Testing

@testable import SegmentedDownload

#if canImport(Glibc)
    import Glibc
#endif

/// How bytes are written to a descriptor whose reader is slow.
@Suite("An open descriptor as the destination")
struct OutputDescriptorTests {
    /// A clock of which every sleep lasts until a pipe has been read empty.
    private final class ReadingClock: EngineClock {
        private struct State {
            var received: [UInt8] = []
            var times: [Duration] = []
        }

        /// The reading end, which does not block.
        private let pipe: CInt
        private let state = Mutex(State())

        init(_ pipe: CInt) { self.pipe = pipe }

        var now: Duration { .seconds(7) }
        var secondsSinceEpoch: Int64 { 0 }
        /// What was read so far.
        var received: [UInt8] { self.state.withLock { $0.received } }
        /// Until when each sleep was to last.
        var times: [Duration] { self.state.withLock { $0.times } }

        func sleep(until time: Duration) async throws {
            self.state.withLock { $0.times.append(time) }
            self.readAll()
        }

        func readAll() {
            var buffer = [UInt8](repeating: 0, count: 64 << 10)
            while case let count = read(self.pipe, &buffer, buffer.count), count > 0 {
                self.state.withLock { $0.received += buffer.prefix(count) }
            }
        }
    }

    @Test("A write to a full pipe waits by the engine's clock, and every byte arrives in order")
    func slowReader() async throws {
        var ends: [CInt] = [-1, -1]
        let isOpen = pipe(&ends) == 0
        try #require(isOpen)
        defer { for end in ends { close(end) } }
        #expect(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0)
        let clock = ReadingClock(ends[0])
        let output = OutputDescriptor(ends[1], clock: clock)
        // 256 KiB: more than a pipe holds.
        let bytes = (0..<256 << 10).map { UInt8(truncatingIfNeeded: $0 / 3) }
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        defer { copy.deallocate() }
        copy.copyBytes(from: bytes)
        // A write that is never read ends too, and fails the test.
        var asks = 0
        try await output.write(UnsafeRawBufferPointer(copy)) {
            asks += 1
            return asks < 1000
        }
        clock.readAll()
        #expect(clock.received == bytes && output.hasWritten)
        #expect(!clock.times.isEmpty && clock.times.allSatisfy { $0 > clock.now })
    }
}
