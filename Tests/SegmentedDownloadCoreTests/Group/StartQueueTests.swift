import Testing

@testable import SegmentedDownloadCore

@Suite("Order of starts")
struct StartQueueTests {
    private static func queue(_ priorities: [Double]) -> StartQueue {
        var queue = StartQueue()
        for (index, priority) in priorities.enumerated() { queue.add(index, priority: priority) }
        return queue
    }

    private static func drain(_ queue: StartQueue) -> [Int] {
        var queue = queue
        var order: [Int] = []
        while let index = queue.next() { order.append(index) }
        return order
    }

    @Test("Downloads of equal priority start in order of arrival")
    func order() {
        #expect(Self.drain(Self.queue([0.5, 0.5, 0.5, 0.5])) == [0, 1, 2, 3])
    }

    @Test("An urgent download starts before those that have waited long")
    func urgency() {
        var queue = Self.queue(Array(repeating: 0.25, count: 100))
        _ = queue.next()
        queue.add(100, priority: 1)
        #expect(queue.next() == 100)
    }

    @Test("Downloads of low priority start, however many urgent ones wait")
    func starvation() {
        var queue = Self.queue([0.25] + Array(repeating: 1, count: 100))
        var turns = 1
        while queue.next() != 0 { turns += 1 }
        #expect(turns <= 5)
    }

    @Test("A priority without waiting downloads accumulates no credit")
    func noCredit() {
        var queue = Self.queue(Array(repeating: 0.5, count: 100))
        for _ in 0..<50 { _ = queue.next() }
        for index in 100..<200 { queue.add(index, priority: 0.5 + 1 / 16) }
        let next = (0..<18).compactMap { _ in queue.next() }
        #expect((8...10).contains(next.count { $0 >= 100 }))
    }

    @Test("A download that was removed, or moved to another priority, starts at most once", arguments: UInt64(0)..<50)
    func model(seed: UInt64) {
        var generator = SplitMix64(seed: seed)
        var queue = StartQueue()
        var waiting: Set<Int> = []
        for _ in 0..<1000 {
            let index = Int.random(in: 0..<20, using: &generator)
            switch Int.random(in: 0..<3, using: &generator) {
            case 0:
                queue.add(index, priority: Double.random(in: 0...1, using: &generator))
                waiting.insert(index)
            case 1:
                queue.remove(index)
                waiting.remove(index)
            default:
                let next = queue.next()
                #expect((next == nil) == waiting.isEmpty, "replay with \(seed)")
                if let next { #expect(waiting.remove(next) != nil, "replay with \(seed)") }
            }
            #expect(queue.count == waiting.count, "replay with \(seed)")
        }
        #expect(Set(Self.drain(queue)) == waiting)
    }
}
