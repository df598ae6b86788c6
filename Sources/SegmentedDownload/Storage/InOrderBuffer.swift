import SegmentedDownloadCore
import Synchronization

/// What has been written of a file and was not read in order yet, kept in memory as far as there is room.
///
/// A ring: a byte's place is its offset modulo the length. Writers put bytes in, in any order; once they are claimed they may be
/// taken, and are taken by one reader, in the order of the file.
final class InOrderBuffer: Sendable {
    private struct State {
        /// The first byte that was to be taken.
        let start: Int64
        /// Everything before it was taken.
        var taken: Int64
        /// The end of what is being taken just now.
        var reached: Int64
        /// What lies behind `taken` and is claimed, ordered and disjoint.
        var claimed: [Range<Int64>] = []
        /// What of the file is in memory; each place is valid until it is taken.
        var held: [Range<Int64>] = []
        /// The file's length, once it is known that all of it is claimed.
        var length: Int64?
        var isClosed = false
        var reader: CheckedContinuation<Void, Never>?
        var writers: [CheckedContinuation<Void, Never>] = []

        /// Whether all of the file was taken.
        var hasEnded: Bool { self.length.map { self.taken >= $0 } ?? false }
    }

    /// Bytes that come next. They stay in their place until ``finish(_:)``.
    struct Run {
        let range: Range<Int64>
        /// Absent where they are only in the file.
        let bytes: UnsafeRawBufferPointer?
    }

    /// 1 MiB: what is taken at once.
    private static let runMax: Int64 = 1 << 20

    /// Who reads and writes where is settled under the lock.
    nonisolated(unsafe) private let memory: UnsafeMutableRawBufferPointer
    private let state: Mutex<State>
    /// Runs end at multiples of this, but for the last one.
    private let alignment: Int64

    /// - Parameters:
    ///   - offset: the first byte that is to be taken.
    ///   - claimed: what of the file is written already, ordered and disjoint.
    init(length: Int, from offset: Int64, claimed: [Range<Int64>], alignment: Int64) {
        // Untouched, it costs nothing: pages come as they are written.
        self.memory = .allocate(byteCount: length, alignment: 4096)
        self.alignment = alignment
        let open = claimed.filter { $0.upperBound > offset }.map { max($0.lowerBound, offset)..<$0.upperBound }
        self.state = Mutex(State(start: offset, taken: offset, reached: offset, claimed: open))
    }

    deinit {
        self.memory.deallocate()
    }

    // MARK: The writers' side

    /// Keeps bytes that are being written, if there is room for them.
    func put(_ bytes: UnsafeRawBufferPointer, at offset: Int64) {
        let end = offset + Int64(bytes.count)
        let hasRoom = self.state.withLock { offset >= $0.reached && end <= $0.taken + Int64(self.memory.count) }
        guard hasRoom, !bytes.isEmpty else { return }
        // Nobody reads there: it is claimed once this has returned.
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

    /// Waits until there is room up to an offset; also once nobody will take anything any more.
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

    /// These bytes are written: they may be taken.
    func claim(_ range: Range<Int64>) {
        let reader = self.state.withLock { state in
            if range.upperBound > state.taken {
                state.claimed.insert(max(range.lowerBound, state.taken)..<range.upperBound)
            }
            return self.takeReader(&state)
        }
        reader?.resume()
    }

    /// These bytes are not believed any more, and will come again. Returns whether some of them were taken already.
    func withdraw(_ ranges: [Range<Int64>]) -> Bool {
        self.state.withLock { state in
            for range in ranges {
                state.claimed = state.claimed.subtracting([range])
                state.held = state.held.subtracting([range])
            }
            return ranges.contains { $0.lowerBound < state.reached }
        }
    }

    /// The whole file is claimed.
    func end(at length: Int64) {
        let reader = self.state.withLock { state in
            state.length = length
            return self.takeReader(&state)
        }
        reader?.resume()
    }

    /// Has reader and writers go on, and the reader end. Returns whether it was given anything yet.
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

    /// The first byte that was not taken.
    var position: Int64 { self.state.withLock { $0.taken } }

    /// The next bytes, once they are there; none once the file has ended or nobody wants more.
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

    /// What ``next()`` gave was taken, and its place is free.
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

    /// Where the next run may end, if there is one.
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
            // Up to where memory has them again, unless that is no place to end.
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
    /// Adds a range to ordered, disjoint ones.
    fileprivate mutating func insert(_ range: Range<Int64>) {
        self = (self + [range]).merged()
    }
}
