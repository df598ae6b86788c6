import NIOCore
import NIOPosix
import Testing

@testable import SegmentedDownload

/// The event loop that receives a body.
@Suite struct ReceivingLoopsTests {
    private static let long = 4.mebibytes

    /// Runs `body` with loops that start threads, and ends them.
    private static func run(_ plan: ReceivingLoops.Plan, _ body: (ReceivingLoops) async throws -> Void) async throws {
        let loops = ReceivingLoops(plan, of: nil)
        try await body(loops)
        await withCheckedContinuation { continuation in loops.shutDown { continuation.resume() } }
    }

    @Test("Short bodies, bodies of unknown length and bodies that are not encrypted are received by the first loop")
    func single() async throws {
        try await Self.run(.init(countMax: 3, spreadsAll: false)) { loops in
            for _ in 0..<4 {
                #expect(loops.place(isTLS: true, length: nil).index == 0)
                #expect(loops.place(isTLS: true, length: Self.long - 1).index == 0)
                #expect(loops.place(isTLS: false, length: 1 << 40).index == 0)
            }
            #expect(loops.count == 1)
        }
    }

    @Test("Long bodies are spread: each gets a loop without a body, a new one, or the one with the fewest")
    func spread() async throws {
        try await Self.run(.init(countMax: 3, spreadsAll: false)) { loops in
            // The first request of a download.
            let probe = loops.place(isTLS: true, length: nil)
            let places = (0..<5).map { _ in loops.place(isTLS: true, length: Self.long) }
            #expect([probe.index] + places.map(\.index) == [0, 1, 2, 0, 1, 2])
            #expect(loops.count == 3)
            loops.end(places[3])
            #expect(loops.place(isTLS: true, length: Self.long).index == 1)
            #expect(Array(loops.makeIterator()).count == 3)
        }
    }

    @Test("One after the other, bodies need one loop")
    func successive() async throws {
        try await Self.run(.init(countMax: 3, spreadsAll: true)) { loops in
            for _ in 0..<4 {
                let place = loops.place(isTLS: true, length: Self.long)
                #expect(place.index == 0)
                loops.end(place)
            }
            #expect(loops.count == 1)
        }
    }

    @Test("If a number of loops was requested, all bodies are spread")
    func all() async throws {
        try await Self.run(.init(countMax: 2, spreadsAll: true)) { loops in
            #expect((0..<4).map { _ in loops.place(isTLS: false, length: nil).index } == [0, 1, 0, 1])
        }
    }

    @Test("Of a given group as many loops are used as it has, and they go on afterwards")
    func given() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let loops = ReceivingLoops(.init(countMax: 3, spreadsAll: true), of: group)
        #expect((0..<4).map { _ in loops.place(isTLS: true, length: nil).index } == [0, 1, 0, 1])
        #expect(
            Set(loops.makeIterator().map { ObjectIdentifier($0) })
                == Set(group.makeIterator().map { ObjectIdentifier($0) }))
        await withCheckedContinuation { continuation in loops.shutDown { continuation.resume() } }
        #expect(try await loops.first.submit { 1 }.get() == 1)
        try await group.shutdownGracefully()
    }

    @Test(
        "By default there are at most half as many loops as processors",
        arguments: [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (8, 4), (64, 8)])
    func processors(count: Int, loops: Int) {
        #expect(DownloadConfiguration.count(processors: count) == loops)
    }

    @Test("The number of threads must be from 1 to 1024, and is the limit of a group that is given")
    func configured() async {
        var configuration = DownloadConfiguration()
        for count in [-1, 0, 1025, .max] {
            configuration.receivingThreads = count
            let refused = configuration
            await #expect(throws: DownloadError.self) { try await withDownloadClient(refused) { _ in } }
        }
        configuration.receivingThreads = 5
        #expect(configuration.loopPlan == .init(countMax: 5, spreadsAll: true))
        configuration.receivingThreads = nil
        configuration.eventLoopGroup = MultiThreadedEventLoopGroup.singleton
        #expect(configuration.loopPlan == .single)
    }
}
