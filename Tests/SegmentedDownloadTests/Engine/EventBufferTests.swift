import Testing

@testable import SegmentedDownload

/// What one observer of a group has not taken yet.
@Suite("A group observer's buffer")
struct EventBufferTests {
    /// A mark that tells events apart.
    private static func event(_ number: Int) -> DownloadGroup.Event {
        var summary = GroupSummary()
        summary.completed = number
        return .allCompleted(summary)
    }

    private static func number(_ event: DownloadGroup.Event?) -> Int? {
        guard case .allCompleted(let summary) = event else { return nil }
        return summary.completed
    }

    @Test("Events are taken in the order they came, however takes and arrivals mix")
    func order() async {
        let (buffer, stream) = EventBuffer.stream()
        var iterator = stream.makeAsyncIterator()
        var (pushed, taken) = (0, 0)
        for (arrivals, takes) in [(5, 3), (1, 3), (10, 4), (0, 6), (3, 3)] {
            for _ in 0..<arrivals {
                buffer.push(Self.event(pushed))
                pushed += 1
            }
            for _ in 0..<takes {
                #expect(Self.number(await iterator.next()) == taken)
                taken += 1
            }
        }
        buffer.finish()
        #expect(await iterator.next() == nil)
    }

    @Test("After the end nothing is kept, and what came before it may still be taken")
    func end() async {
        let (buffer, stream) = EventBuffer.stream()
        buffer.push(Self.event(1))
        buffer.finish()
        buffer.push(Self.event(2))
        var numbers: [Int?] = []
        for await event in stream { numbers.append(Self.number(event)) }
        #expect(numbers == [1])
    }

    @Test("An observer that waits gets the next event, or the end")
    func waiting() async {
        let (buffer, stream) = EventBuffer.stream()
        await withTaskGroup { group in
            group.addTask {
                var numbers: [Int?] = []
                for await event in stream { numbers.append(Self.number(event)) }
                #expect(numbers == [1, 2])
            }
            group.addTask {
                for number in 1...2 {
                    await Task.yield()
                    buffer.push(Self.event(number))
                    buffer.wakeUp()?()
                }
                await Task.yield()
                buffer.finish()
            }
            await group.waitForAll()
        }
    }

    @Test("An observer whose task is cancelled has seen the end")
    func cancellation() async {
        let (buffer, stream) = EventBuffer.stream()
        await withTaskGroup { group in
            group.addTask { for await _ in stream {} }
            group.cancelAll()
            await group.waitForAll()
        }
        buffer.push(Self.event(1))
        var iterator = stream.makeAsyncIterator()
        #expect(await iterator.next() == nil)
    }

    @Test("An observer that waits gets all that came before the end, one event for each of its tasks")
    func held() async {
        let (buffer, stream) = EventBuffer.stream()
        await withTaskGroup(of: Int?.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    var iterator = stream.makeAsyncIterator()
                    return Self.number(await iterator.next())
                }
            }
            group.addTask {
                buffer.push(Self.event(1))
                buffer.push(Self.event(2))
                buffer.finish()
                return nil
            }
            var numbers: [Int] = []
            for await number in group { if let number { numbers.append(number) } }
            #expect(numbers.sorted() == [1, 2])
        }
    }
}
