import Foundation
import Synchronization

/// Limits how many tests with an origin, a client or a process run at once.
///
/// Swift Testing starts all tests at once. Without the limit two threads serve hundreds of them, each step waits for
/// all others, and thousands of descriptors and threads are open.
package enum TestPlaces {
    @TaskLocal private static var hasPlace = false
    private static let gate = Gate(places: 8)

    /// Runs `body` when a place is free.
    ///
    /// - Parameter isPatient: Whether the test needs no place because it mostly waits.
    package static func take<Answer>(
        isPatient: Bool = false, _ body: () async throws -> Answer
    ) async rethrows -> Answer {
        // A test that waits for a second place while it has the first could wait for ever.
        if Self.hasPlace || isPatient { return try await Self.$hasPlace.withValue(true, operation: body) }
        await Self.gate.enter()
        defer { Self.gate.leave() }
        return try await Self.$hasPlace.withValue(true, operation: body)
    }
}

/// Creates a directory for one test that has a place, and removes it afterwards.
package func withTemporaryDirectory<Answer>(_ body: (String) async throws -> Answer) async throws -> Answer {
    try await TestPlaces.take {
        let path = NSTemporaryDirectory() + "segdl-test-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try await body(path)
    }
}

/// Admits a limited number of tasks; the others enter in the order they came.
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
