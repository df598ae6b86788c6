/// The sequences that deliver something to their readers, by number. The owner guards it with a lock.
struct Observers<Element: Sendable>: Sendable {
    private var continuations: [Int: AsyncStream<Element>.Continuation] = [:]
    private var numberNext = 0

    /// - Returns: The number with which it is removed.
    mutating func add(_ continuation: AsyncStream<Element>.Continuation) -> Int {
        self.numberNext += 1
        self.continuations[self.numberNext] = continuation
        return self.numberNext
    }

    mutating func remove(_ number: Int) { self.continuations[number] = nil }

    /// To yield to, once the lock is released.
    var all: [AsyncStream<Element>.Continuation] { Array(self.continuations.values) }

    /// Removes all, which are then to be finished.
    mutating func removeAll() -> [AsyncStream<Element>.Continuation] {
        defer { self.continuations = [:] }
        return self.all
    }
}
