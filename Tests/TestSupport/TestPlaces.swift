import Foundation
import Synchronization

/// Lets so many tests of those run at once that have an origin, a client or a process of their own.
///
/// Swift Testing starts all at once: without this two threads serve hundreds of them, each waits for all others at every step,
/// and thousands of descriptors and threads are open.
package enum TestPlaces {
    @TaskLocal private static var hasPlace = false
    private static let gate = Gate(places: 8)

    /// Runs `body` when there is a place for it.
    ///
    /// - Parameter isPatient: whether it needs none because it only waits most of the time.
    package static func take<Answer>(
        isPatient: Bool = false, _ body: () async throws -> Answer
    ) async rethrows -> Answer {
        // One that waited for a second place while it has the first could wait for ever.
        if Self.hasPlace || isPatient { return try await Self.$hasPlace.withValue(true, operation: body) }
        await Self.gate.enter()
        defer { Self.gate.leave() }
        return try await Self.$hasPlace.withValue(true, operation: body)
    }
}

/// A directory of its own for one test that has a place, removed afterwards.
package func withTemporaryDirectory<Answer>(_ body: (String) async throws -> Answer) async throws -> Answer {
    try await TestPlaces.take {
        let path = NSTemporaryDirectory() + "segdl-test-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try await body(path)
    }
}

/// So many may be inside; the others enter in the order they came.
private final class Gate: Sendable {
    private struct State {
        var places: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init(places: Int) {
        self.state = Mutex(State(places: places))
    }

    func enter() async {
        await withCheckedContinuation { continuation in
            let isIn = self.state.withLock { state in
                guard state.places > 0 else {
                    state.waiting.append(continuation)
                    return false
                }
                state.places -= 1
                return true
            }
            if isIn { continuation.resume() }
        }
    }

    func leave() {
        let next = self.state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.places += 1
            return nil
        }
        next?.resume()
    }
}
