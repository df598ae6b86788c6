import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// The ring between the writers of a file, in any order, and its reader in order.
@Suite struct InOrderBufferTests {
    private static func put(_ buffer: InOrderBuffer, _ range: Range<Int64>) {
        range.map { UInt8(truncatingIfNeeded: $0 &* 31) }.withUnsafeBytes { buffer.put($0, at: range.lowerBound) }
    }

    /// Reads everything available; returns whether it was right, and the number of bytes from memory.
    private static func take(_ buffer: InOrderBuffer, upTo end: Int64) async -> (isRight: Bool, inMemory: Int64) {
        var (isRight, inMemory): (Bool, Int64) = (true, 0)
        while buffer.position < end, let run = await buffer.next() {
            if let bytes = run.bytes {
                inMemory += Int64(bytes.count)
                isRight = isRight && zip(run.range, bytes).allSatisfy { UInt8(truncatingIfNeeded: $0 &* 31) == $1 }
                isRight = isRight && run.range.count == bytes.count
            }
            buffer.finish(run)
        }
        return (isRight, inMemory)
    }

    @Test("Bytes written in any order are read in the file's order, around the ring", arguments: 0..<20)
    func order(seed: UInt64) async {
        var generator = SplitMix64(seed: seed)
        let length = Int.random(in: 1000...4000, using: &generator)
        let buffer = InOrderBuffer(length: length, from: 0, claimed: [], alignment: 1)
        var end: Int64 = 0
        var waiting: [Range<Int64>] = []
        for _ in 0..<50 {
            // A window's worth of pieces, shuffled.
            while end < buffer.position + Int64(length) {
                let next = min(end + Int64.random(in: 1...900, using: &generator), buffer.position + Int64(length))
                waiting.append(end..<next)
                end = next
            }
            for range in waiting.shuffled(using: &generator) {
                Self.put(buffer, range)
                buffer.claim(range)
            }
            waiting = []
            let before = buffer.position
            let upTo = Int64.random(in: (before + 1)...end, using: &generator)
            let (isRight, inMemory) = await Self.take(buffer, upTo: upTo)
            #expect(isRight && inMemory == buffer.position - before)
        }
    }

    @Test("Nothing is read before it is claimed, and bytes without room in the ring are read from the file")
    func claims() async {
        let buffer = InOrderBuffer(length: 256, from: 0, claimed: [], alignment: 1)
        Self.put(buffer, 0..<100)
        Self.put(buffer, 200..<300)
        buffer.claim(0..<50)
        #expect(await Self.take(buffer, upTo: 50) == (true, 50))
        buffer.claim(200..<300)
        buffer.claim(50..<200)
        // 50..<100 is in memory, 100..<200 was never put, and the ring had no room for 200..<300.
        #expect(await Self.take(buffer, upTo: 300) == (true, 50))
    }

    @Test("Pieces end where a digest's state can be saved, except for the last one")
    func alignment() async {
        let buffer = InOrderBuffer(length: 1024, from: 0, claimed: [], alignment: 128)
        Self.put(buffer, 0..<300)
        buffer.claim(0..<300)
        #expect(await buffer.next()?.range == 0..<256)
        #expect(await Self.take(buffer, upTo: 256) == (true, 256))
        buffer.end(at: 300)
        #expect(await buffer.next()?.range == 256..<300)
        #expect(await Self.take(buffer, upTo: 300) == (true, 44))
        #expect(await buffer.next()?.range == nil)
    }

    @Test("A withdrawal returns whether the bytes were read already; others are read again")
    func withdrawal() async {
        let buffer = InOrderBuffer(length: 1024, from: 0, claimed: [], alignment: 1)
        Self.put(buffer, 0..<600)
        buffer.claim(0..<600)
        let first = await buffer.next()
        first.map { buffer.finish($0) }
        #expect(buffer.withdraw([0..<10]))
        #expect(buffer.position == 600)
        buffer.claim(600..<700)
        #expect(!buffer.withdraw([600..<700, 900..<Int64.max]))
        Self.put(buffer, 600..<800)
        buffer.claim(600..<800)
        #expect(await Self.take(buffer, upTo: 800) == (true, 200))
    }

    @Test("Withdrawn bytes are not read before they are claimed again")
    func withdrawn() async {
        let buffer = InOrderBuffer(length: 1024, from: 0, claimed: [], alignment: 1)
        Self.put(buffer, 0..<100)
        buffer.claim(0..<100)
        #expect(!buffer.withdraw([0..<100]))
        buffer.claim(0..<30)
        let run = await buffer.next()
        // They are read from the file: what is in memory was withdrawn, too.
        #expect(run?.range == 0..<30 && run?.bytes == nil)
    }

    @Test("Closing releases the reader and the writers")
    func closing() async {
        let buffer = InOrderBuffer(length: 16, from: 0, claimed: [], alignment: 1)
        await withTaskGroup { group in
            group.addTask { #expect(await buffer.next()?.range == nil) }
            group.addTask { try? await buffer.room(upTo: 17) }
            group.addTask { buffer.close() }
            await group.waitForAll()
        }
    }

    @Test("A cancelled writer no longer waits for room")
    func cancellation() async {
        let buffer = InOrderBuffer(length: 16, from: 0, claimed: [], alignment: 1)
        await withTaskGroup { group in
            group.addTask { await #expect(throws: CancellationError.self) { try await buffer.room(upTo: 17) } }
            group.cancelAll()
            await group.waitForAll()
        }
    }

    @Test("A writer waits until there is room for all it has, however often some is made, and not where there is")
    func room() async throws {
        let buffer = InOrderBuffer(length: 16, from: 0, claimed: [], alignment: 1)
        try await buffer.room(upTo: 16)
        try await withThrowingTaskGroup { group in
            group.addTask { try await buffer.room(upTo: 40) }
            for offset in stride(from: Int64(0), to: 24, by: 8) {
                for _ in 0..<50 { await Task.yield() }
                Self.put(buffer, offset..<offset + 8)
                buffer.claim(offset..<offset + 8)
                #expect(await Self.take(buffer, upTo: offset + 8) == (true, 8))
            }
            try await group.waitForAll()
        }
        #expect(buffer.position == 24)
    }
}
