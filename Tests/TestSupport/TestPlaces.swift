import Foundation
import Synchronization

/// Limits how many tests with an origin, a client or a process run at once, and which of them run together.
///
/// Swift Testing starts all tests at once. Without the limit two threads serve hundreds of them, each step waits for
/// all others, and thousands of descriptors and threads are open.
package enum TestPlaces {
    /// What tests of one kind do must not happen while tests of the other kind run.
    package enum Kind: Sendable {
        /// They start processes. Until its program begins, a new process has copies of all descriptors of this one.
        case processes
        /// They lock files in this process, and expect a lock to be free as soon as they have closed the file.
        case locks
    }

    @TaskLocal private static var hasPlace = false
    private static let gate = Gate(places: 12)

    /// Runs `body` when a place is free and no test of the other kind runs.
    ///
    /// - Parameter isPatient: Whether the test needs no place because it mostly waits.
    package static func take<Answer>(
        _ kind: Kind, isPatient: Bool = false, _ body: () async throws -> Answer
    ) async rethrows -> Answer {
        // A test that waits for a second place while it has the first could wait for ever.
        if Self.hasPlace { return try await body() }
        let places = isPatient ? 0 : 1
        await Self.gate.enter(kind, places: places)
        defer { Self.gate.leave(places: places) }
        return try await Self.$hasPlace.withValue(true, operation: body)
    }
}

/// Creates a directory for one test that has a place, and removes it afterwards.
package func withTemporaryDirectory<Answer>(
    _ kind: TestPlaces.Kind = .locks, _ body: (String) async throws -> Answer
) async throws -> Answer {
    try await TestPlaces.take(kind) {
        let path = NSTemporaryDirectory() + "segdl-test-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: path) }
        return try await body(path)
    }
}

/// Admits tests of one kind at a time, and a limited number of them; they enter in the order they came. When the last
/// of a kind has left, the kind of the one that has waited longest is next.
private final class Gate: Sendable {
    private struct Waiter {
        let kind: TestPlaces.Kind
        let places: Int
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var placesLeft: Int
        /// The kind of those that are in.
        var kind: TestPlaces.Kind?
        var count = 0
        var waiting: [Waiter] = []

        /// Admits all that may enter now.
        mutating func admit() -> [Waiter] {
            if self.count == 0 { self.kind = self.waiting.first?.kind }
            var admitted: [Waiter] = []
            var left: [Waiter] = []
            for waiter in self.waiting {
                if waiter.kind == self.kind, waiter.places <= self.placesLeft {
                    self.placesLeft -= waiter.places
                    self.count += 1
                    admitted.append(waiter)
                } else {
                    left.append(waiter)
                }
            }
            self.waiting = left
            return admitted
        }
    }

    private let state: Mutex<State>

    init(places: Int) {
        self.state = Mutex(State(placesLeft: places))
    }

    func enter(_ kind: TestPlaces.Kind, places: Int) async {
        await withCheckedContinuation { continuation in
            let admitted = self.state.withLock { state in
                state.waiting.append(Waiter(kind: kind, places: places, continuation: continuation))
                return state.admit()
            }
            for waiter in admitted { waiter.continuation.resume() }
        }
    }

    func leave(places: Int) {
        let admitted = self.state.withLock { state in
            state.placesLeft += places
            state.count -= 1
            return state.admit()
        }
        for waiter in admitted { waiter.continuation.resume() }
    }
}
