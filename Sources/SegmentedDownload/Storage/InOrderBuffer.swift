import SegmentedDownloadCore
import Synchronization

/// Holds bytes of a file that have been written but not yet read in order.
///
/// The buffer is a ring: a byte's position is its offset modulo the length. Writers put bytes in any order. Once bytes
/// are claimed, a single reader takes them in the file's order.
final class InOrderBuffer: Sendable {
    private struct State {
        /// The offset of the first byte to take.
        let start: Int64
        /// The end of the bytes that were taken.
        var taken: Int64
        /// The end of the bytes being taken now.
        var reached: Int64
        /// The claimed ranges behind `taken`, ordered and disjoint.
        var claimed: [Range<Int64>] = []
        /// The ranges held in memory. A position in the ring is valid until its byte is taken.
        var held: [Range<Int64>] = []
        /// The file's length, once all of it is claimed.
        var length: Int64?
        var isClosed = false
        var reader: CheckedContinuation<Void, Never>?
        var writers: [CheckedContinuation<Void, Never>] = []

        /// Whether the whole file was taken.
        var hasEnded: Bool { self.length.map { self.taken >= $0 } ?? false }
    }

    /// The next bytes. They stay in memory until ``finish(_:)``.
    struct Run {
        let range: Range<Int64>
        /// `nil` if the bytes are only in the file.
        let bytes: UnsafeRawBufferPointer?
    }

    /// 1 MiB: the most that is taken at once.
    private static let runMax: Int64 = 1 << 20

    /// The lock's state decides which part of the memory a thread may read or write.
    nonisolated(unsafe) private let memory: UnsafeMutableRawBufferPointer
    private let state: Mutex<State>
    /// Runs end at multiples of this, except for the last one.
    private let alignment: Int64

    /// Creates a buffer.
    ///
    /// - Parameters:
    ///   - offset: The first byte to take.
    ///   - claimed: The ranges of the file that are written already, ordered and disjoint.
    init(length: Int, from offset: Int64, claimed: [Range<Int64>], alignment: Int64) {
        // Costs nothing until it is written to: the system allocates pages on first use.
        self.memory = .allocate(byteCount: length, alignment: 4096)
        self.alignment = alignment
        let open = claimed.filter { $0.upperBound > offset }.map { max($0.lowerBound, offset)..<$0.upperBound }
        self.state = Mutex(State(start: offset, taken: offset, reached: offset, claimed: open))
    }

    deinit {
        self.memory.deallocate()
    }

    // MARK: The writers' side

    /// Copies bytes that are being written into the ring, if there is room.
    func put(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
        let end = offset + Int64(bytes.count)
        let hasRoom = self.state.withLock { offset >= $0.reached && end <= $0.taken + Int64(self.memory.count) }
        guard hasRoom, !bytes.isEmpty else { return }
        // The reader does not read here: the bytes are claimed only after this call.
        let start = Int(offset % Int64(self.memory.count))
        let first = min(bytes.count, self.memory.count - start)
        UnsafeMutableRawBufferPointer(rebasing: self.memory[start..<(start + first)])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<first]))
        if first < bytes.count {
            UnsafeMutableRawBufferPointer(rebasing: self.memory[..<(bytes.count - first)])
                .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[first...]))
        }
        self.state.withLock { $0.held.insert(offset..<end) }
    }

    /// Waits until there is room up to an offset, or the buffer is closed.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    func room(upTo end: Int64) async throws {
        while true {
            try Task.checkCancellation()
            let hasRoom = await withTaskCancellationHandler {
                await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                    let goesOn = self.state.withLock { state in
                        if state.isClosed || end <= state.taken + Int64(self.memory.count) || Task.isCancelled {
                            return true
                        }
                        state.writers.append(continuation)
                        return false
                    }
                    if goesOn { continuation.resume() }
                }
                return self.state.withLock { $0.isClosed || end <= $0.taken + Int64(self.memory.count) }
            } onCancel: {
                self.wakeWriters()
            }
            if hasRoom { return }
        }
    }

    /// Marks written bytes as ready to be taken.
    func claim(_ range: Range<Int64>) {
        let reader = self.state.withLock { state in
            if range.upperBound > state.taken {
                state.claimed.insert(max(range.lowerBound, state.taken)..<range.upperBound)
            }
            return self.takeReader(&state)
        }
        reader?.resume()
    }

    /// Removes bytes that are no longer trusted and will be written again.
    ///
    /// - Returns: Whether some of them were already taken.
    func withdraw(_ ranges: [Range<Int64>]) -> Bool {
        self.state.withLock { state in
            for range in ranges {
                state.claimed = state.claimed.subtracting([range])
                state.held = state.held.subtracting([range])
            }
            return ranges.contains { $0.lowerBound < state.reached }
        }
    }

    /// Marks the whole file as claimed.
    func end(at length: Int64) {
        let reader = self.state.withLock { state in
            state.length = length
            return self.takeReader(&state)
        }
        reader?.resume()
    }

    /// Closes the buffer: the reader ends and waiting writers continue.
    ///
    /// - Returns: Whether any bytes were taken.
    @discardableResult
    func close() -> Bool {
        let (reader, hasBegun) = self.state.withLock { state in
            state.isClosed = true
            defer { state.reader = nil }
            return (state.reader, state.reached > state.start)
        }
        reader?.resume()
        self.wakeWriters()
        return hasBegun
    }

    private func wakeWriters() {
        let writers = self.state.withLock { state in
            defer { state.writers = [] }
            return state.writers
        }
        for writer in writers { writer.resume() }
    }

    // MARK: The reader's side

    /// The offset of the first byte that was not taken.
    var position: Int64 { self.state.withLock { $0.taken } }

    /// Waits for the next bytes; `nil` at the end of the file or once the buffer is closed.
    func next() async -> Run? {
        while !Task.isCancelled {
            let (run, isOver) = self.state.withLock { state in
                (self.nextRun(&state), state.isClosed || state.hasEnded)
            }
            if isOver { return nil }
            if let run { return run }
            await withTaskCancellationHandler {
                await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                    let goesOn = self.state.withLock { state in
                        if self.runEnd(state) != nil || state.hasEnded || state.isClosed || Task.isCancelled {
                            return true
                        }
                        state.reader = continuation
                        return false
                    }
                    if goesOn { continuation.resume() }
                }
            } onCancel: {
                self.close()
            }
        }
        return nil
    }

    /// Marks a run as taken, which frees its room.
    func finish(_ run: Run) {
        self.state.withLock { state in
            state.taken = run.range.upperBound
            state.claimed = state.claimed.subtracting([0..<state.taken])
            state.held = state.held.subtracting([0..<state.taken])
        }
        self.wakeWriters()
    }

    private func takeReader(_ state: inout State) -> CheckedContinuation<Void, Never>? {
        guard self.runEnd(state) != nil || state.hasEnded else { return nil }
        defer { state.reader = nil }
        return state.reader
    }

    /// Where the next run may end; `nil` if no bytes are ready.
    private func runEnd(_ state: State) -> Int64? {
        guard let first = state.claimed.first, first.lowerBound <= state.taken, first.upperBound > state.taken else {
            return nil
        }
        if first.upperBound == state.length { return first.upperBound }
        let end = first.upperBound / self.alignment * self.alignment
        return end > state.taken ? end : nil
    }

    private func nextRun(_ state: inout State) -> Run? {
        guard var end = self.runEnd(state) else { return nil }
        end = min(end, state.taken + Self.runMax)
        let held = state.held.first { $0.upperBound > state.taken }
        guard let held, held.lowerBound <= state.taken else {
            // The run ends where the bytes are in memory again, if that is a multiple of the alignment.
            if let held, held.lowerBound < end, held.lowerBound % self.alignment == 0 { end = held.lowerBound }
            state.reached = end
            return Run(range: state.taken..<end, bytes: nil)
        }
        let start = Int(state.taken % Int64(self.memory.count))
        let inMemory = min(held.upperBound, state.taken + Int64(self.memory.count - start))
        let aligned = inMemory / self.alignment * self.alignment
        let isInMemory = end <= inMemory || aligned > state.taken
        if end > inMemory, isInMemory { end = aligned }
        state.reached = end
        guard isInMemory else { return Run(range: state.taken..<end, bytes: nil) }
        let bytes = UnsafeRawBufferPointer(self.memory)[start..<(start + Int(end - state.taken))]
        return Run(range: state.taken..<end, bytes: UnsafeRawBufferPointer(rebasing: bytes))
    }
}

extension [Range<Int64>] {
    /// Adds a range to ordered, disjoint ranges.
    fileprivate mutating func insert(_ range: Range<Int64>) {
        self = (self + [range]).merged()
    }
}
