import AsyncHTTPClient
import Dispatch
import NIOCore
import NIOPosix
import Synchronization

/// The event loops that receive and decrypt bodies.
///
/// The first one also runs the engine, and is the only one while bodies are short. Another one is started when each has
/// a body and a further long one is requested. All HTTP clients of a transport have this group, because a group can
/// share its connections and TLS contexts: a connection that is idle is used again, whichever loop it is on.
final class ReceivingLoops: EventLoopGroup {
    /// How many loops there may be, and which bodies they receive.
    struct Plan: Hashable, Sendable {
        let countMax: Int
        /// Whether all bodies are spread, or only those that keep a thread busy.
        let spreadsAll: Bool

        static let single = Plan(countMax: 1, spreadsAll: false)
    }

    private struct Lane {
        let loop: any EventLoop
        /// The number of bodies that the loop receives, or is going to.
        var bodyCount = 0
    }

    private struct State {
        var lanes: [Lane]
        /// Loops of a group that was given, and were not used yet.
        var given: ArraySlice<any EventLoop>
        /// The threads that were started.
        var threads: [MultiThreadedEventLoopGroup]
    }

    /// The loop of one body, until ``end(_:)``.
    struct Place: Sendable {
        let preference: HTTPClient.EventLoopPreference
        /// `nil` if there is only one loop.
        let index: Int?
    }

    /// 4 MiB: decrypted in 2 to 5 ms. Starting a thread takes 0.1 ms.
    private static let lengthLong: Int64 = 4 << 20

    let first: any EventLoop
    private let plan: Plan
    /// The loops for which descriptors are kept.
    private let loopsKept: Int
    private let state: Mutex<State>

    /// - Parameter group: The loops to use; nil to start threads.
    init(_ plan: Plan, of group: (any EventLoopGroup)?) {
        if let group {
            // A group of many loops may begin with a different one each time.
            let loops = plan.countMax == 1 ? [group.next()] : Array(group.makeIterator().prefix(plan.countMax))
            self.first = loops[0]
            self.plan = Plan(countMax: loops.count, spreadsAll: plan.spreadsAll)
            self.loopsKept = 0
            self.state = Mutex(State(lanes: [Lane(loop: loops[0])], given: loops.dropFirst(), threads: []))
        } else {
            let own = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            self.first = own.next()
            self.plan = Plan(
                countMax: 1 + DescriptorLimit.keepLoops(plan.countMax - 1), spreadsAll: plan.spreadsAll)
            self.loopsKept = self.plan.countMax - 1
            self.state = Mutex(State(lanes: [Lane(loop: self.first)], given: [], threads: [own]))
        }
    }

    deinit { DescriptorLimit.returnLoops(self.loopsKept) }

    // MARK: Placing bodies

    /// Chooses the loop for a body.
    ///
    /// A new connection is made on it. If a connection is idle, that one is used, and receives where it is.
    ///
    /// - Parameter length: The number of requested bytes; `nil` if the response decides.
    func place(isTLS: Bool, length: Int64?) -> Place {
        guard self.plan.countMax > 1 else { return Place(preference: .indifferent, index: nil) }
        let isSpread = self.plan.spreadsAll || isTLS && (length ?? 0) >= Self.lengthLong
        return self.state.withLock { state in
            let index = isSpread ? self.freest(&state) : 0
            state.lanes[index].bodyCount += 1
            return Place(preference: .delegate(on: state.lanes[index].loop), index: index)
        }
    }

    /// Records that a body has ended.
    func end(_ place: Place) {
        guard let index = place.index else { return }
        self.state.withLock { $0.lanes[index].bodyCount -= 1 }
    }

    /// The first loop without a body, a new one, or the one with the fewest bodies.
    private func freest(_ state: inout State) -> Int {
        var freest = 0
        for index in state.lanes.indices where state.lanes[index].bodyCount < state.lanes[freest].bodyCount {
            freest = index
        }
        guard state.lanes[freest].bodyCount > 0, state.lanes.count < self.plan.countMax else { return freest }
        if let loop = state.given.popFirst() {
            state.lanes.append(Lane(loop: loop))
        } else {
            guard DescriptorLimit.hasRoomForLoop else { return freest }
            let thread = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            state.threads.append(thread)
            state.lanes.append(Lane(loop: thread.next()))
        }
        return state.lanes.count - 1
    }

    /// The number of loops that have received a body, or are going to.
    var count: Int { self.state.withLock { $0.lanes.count } }

    // MARK: The group

    func next() -> any EventLoop { self.first }

    func any() -> any EventLoop { self.first }

    func makeIterator() -> EventLoopIterator { EventLoopIterator(self.state.withLock { $0.lanes.map(\.loop) }) }

    /// Ends the threads that were started. Loops that were given go on.
    func shutDown(_ done: @escaping @Sendable () -> Void) {
        guard let thread = self.state.withLock({ $0.threads.popLast() }) else { return done() }
        thread.shutdownGracefully { _ in self.shutDown(done) }
    }

    func shutdownGracefully(queue: DispatchQueue, _ callback: @escaping @Sendable ((any Error)?) -> Void) {
        self.shutDown { queue.async { callback(nil) } }
    }
}
