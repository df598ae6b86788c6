import ArgumentParser
import Foundation
import Synchronization

/// Counts figures and collects violations.
final class Report: Sendable {
    private struct State {
        var figures: [(name: String, value: Int)] = []
        var violations: [String] = []
    }

    private let name: String
    private let start = ContinuousClock.now
    private let state = Mutex(State())

    init(_ name: String) {
        self.name = name
    }

    func count(_ figure: String, _ value: Int = 1) {
        self.state.withLock { state in
            guard let index = state.figures.firstIndex(where: { $0.name == figure }) else {
                state.figures.append((figure, value))
                return
            }
            state.figures[index].value += value
        }
    }

    /// Keeps the largest value.
    func peak(_ figure: String, _ value: Int) {
        self.state.withLock { state in
            guard let index = state.figures.firstIndex(where: { $0.name == figure }) else {
                state.figures.append((figure, value))
                return
            }
            state.figures[index].value = max(state.figures[index].value, value)
        }
    }

    /// Prints a violation at once, with the command to replay it.
    func violation(_ what: String, replay: String) {
        let text = "\(self.name): VIOLATION: \(what)\n    replay: \(replay)"
        self.state.withLock { $0.violations.append(text) }
        print(text)
        // So that the output can be watched, and survives if the run is stopped.
        fflush(nil)
    }

    /// Prints the summary; fails after a violation, or if no case ran.
    func conclude(atLeast figure: String) throws {
        let (figures, violations) = self.state.withLock { ($0.figures, $0.violations) }
        let seconds = Int((ContinuousClock.now - self.start) / .seconds(1))
        let words = figures.map { "\($0.value) \($0.name)" } + ["\(violations.count) violations", "\(seconds) s"]
        print("\(self.name): \(words.joined(separator: ", "))")
        guard violations.isEmpty else { throw ExitCode(1) }
        guard figures.contains(where: { $0.name == figure && $0.value > 0 }) else {
            print("\(self.name): no case ran")
            throw ExitCode(1)
        }
    }
}

/// Calls `body` for every element, up to `jobs` at a time.
func forEach<Element: Sendable>(
    _ elements: [Element], atOnce jobs: Int, _ body: @escaping @Sendable (Element) async throws -> Void
) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, element) in elements.enumerated() {
            if index >= jobs { try await group.next() }
            group.addTask { try await body(element) }
        }
        try await group.waitForAll()
    }
}
