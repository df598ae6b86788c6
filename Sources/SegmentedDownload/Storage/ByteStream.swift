import SegmentedDownloadCore
import Synchronization

/// Passes a file's bytes in order to a consumer in this process, one piece at a time.
///
/// It holds at most one piece that the consumer has not taken. The in-order reader waits meanwhile, so the reading
/// window fills and the connections wait.
final class ByteStream: InOrderOutput {
    private struct State {
        /// The piece that the consumer has not taken.
        var piece: [UInt8]?
        var hasWritten = false
        /// How the download ended; `nil` while it runs.
        var end: Result<Void, DownloadError>?
        /// Tasks to resume after any change.
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    /// 256 KiB: a piece costs two switches of tasks, and longer ones would only wait in the consumer.
    static let pieceLengthMax = 256 << 10

    private let state = Mutex(State())

    // MARK: The reader's side

    var hasWritten: Bool { self.state.withLock { $0.hasWritten } }

    func write(_ bytes: UnsafeRawBufferPointer, while isWanted: () -> Bool) async throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            // Asked under the lock: a call of `wake()` cannot be missed.
            await self.wait { $0.piece == nil || $0.end != nil || !isWanted() }
            let piece = [UInt8](rest.prefix(Self.pieceLengthMax))
            rest = rest.dropFirst(piece.count)
            try self.put(piece, while: isWanted)
        }
    }

    private func put(_ piece: [UInt8], while isWanted: () -> Bool) throws(DownloadError) {
        // Asked under the lock: an interrupted reader must not write beside the one that follows it.
        let hasEnded = self.change { state in
            guard state.end == nil, isWanted(), !Task.isCancelled else { return true }
            precondition(state.piece == nil, "a piece that was not taken would be lost")
            state.piece = piece
            state.hasWritten = true
            return false
        }
        if hasEnded { throw DownloadError(.cancelled, "writing was interrupted, or the consumer has ended") }
    }

    func wake() {
        self.change { _ in }
    }

    // MARK: The download's side

    /// Ends the stream after a terminal event; later ones change nothing. A piece that waits can still be taken.
    func end(with event: DownloadEvent) {
        self.change { state in state.end = state.end ?? event.result.map { _ in } }
    }

    /// Whether the download has not ended.
    var isActive: Bool { self.state.withLock { $0.end == nil } }

    /// Waits until the download has ended, also in a task that is cancelled.
    func waitUntilEnded() async {
        while self.isActive {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                let hasEnded = self.state.withLock { state in
                    if state.end == nil { state.waiting.append(continuation) }
                    return state.end != nil
                }
                if hasEnded { continuation.resume() }
            }
        }
    }

    // MARK: The consumer's side

    /// Waits for the next piece; `nil` once the download has completed and every piece was taken.
    ///
    /// - Throws: The error with which the download ended, every time; code `cancelled` if the task is cancelled.
    func next() async throws(DownloadError) -> [UInt8]? {
        while true {
            try await self.waitForBytes { $0.piece != nil || $0.end != nil }
            let (piece, end) = self.change { state in
                defer { state.piece = nil }
                return (state.piece, state.end)
            }
            if let piece { return piece }
            if let end {
                try end.get()
                return nil
            }
            // Another task has taken the piece.
        }
    }

    /// Waits until the first bytes were written or the download has ended.
    ///
    /// - Throws: The error with which it ended, if no bytes were written; code `cancelled` if the task is cancelled.
    func waitForBeginning() async throws(DownloadError) {
        while true {
            let (hasBegun, end) = self.state.withLock { ($0.hasWritten, $0.end) }
            if hasBegun { return }
            if let end { return try end.get() }
            try await self.waitForBytes { $0.hasWritten || $0.end != nil }
        }
    }

    private func waitForBytes(until isReady: (State) -> Bool) async throws(DownloadError) {
        await self.wait(until: isReady)
        if Task.isCancelled { throw DownloadError(.cancelled, "the task that reads the bytes was cancelled") }
    }

    // MARK: Waiting

    /// Waits until the state is ready or the task is cancelled.
    private func wait(until isReady: (State) -> Bool) async {
        while !Task.isCancelled, !self.state.withLock({ isReady($0) }) {
            await withTaskCancellationHandler {
                await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                    let goesOn = self.state.withLock { state in
                        if Task.isCancelled || isReady(state) { return true }
                        state.waiting.append(continuation)
                        return false
                    }
                    if goesOn { continuation.resume() }
                }
            } onCancel: {
                self.wake()
            }
        }
    }

    /// Changes the state and resumes all waiting tasks.
    @discardableResult
    private func change<Answer: Sendable>(_ body: (inout State) -> Answer) -> Answer {
        let (answer, waiting) = self.state.withLock { state in
            let answer = body(&state)
            defer { state.waiting = [] }
            return (answer, state.waiting)
        }
        for task in waiting { task.resume() }
        return answer
    }
}
