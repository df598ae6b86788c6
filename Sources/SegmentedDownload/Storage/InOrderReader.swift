import SegmentedDownloadCore
import Synchronization

/// Reads a file in order while its segments are written in any order, to compute digests or to write it to an output.
///
/// The digests are complete with the last byte, without a second read. Their states are stored in the manifest.
final class InOrderReader: Sendable {
    private struct Digests {
        var running: [RunningDigest]
        /// Whether bytes that were taken turned out to belong to another file, so that the digests are invalid.
        var isSpoiled = false
        /// Why the bytes could not be written to the output.
        var failure: (any Error)?
        var waiter: CheckedContinuation<Void, Never>?
        var isClosed = false
    }

    /// 48 MiB. With the bytes that connections hold, at most 64 MiB lie between the network and the reader. Each of 16
    /// connections then requests 2 MiB at a time, long enough to make the cost of a request negligible.
    static let windowLength: Int64 = 48 << 20

    /// 4: if more than this many windows at the beginning are unread, the file is read at the end instead. Catching up
    /// first would keep the network waiting.
    private static let arrearsMax: Int64 = 4

    /// How many times per window the progress is reported.
    private static let reportsPerWindow: Int64 = 32

    let window: ReadingWindow
    private let file: any StorageFile
    private let output: (any InOrderOutput)?
    private let buffer: InOrderBuffer
    private let digests: Mutex<Digests>

    /// Creates a reader.
    ///
    /// - Parameters:
    ///   - claims: The ranges that are written already, in order.
    ///   - digests: The digests with their states at `offset`.
    ///   - output: Where to write the bytes to. If there is an output, they are not stored in a file.
    private init(
        _ file: any StorageFile, id: UInt64, digests: [RunningDigest], from offset: Int64, claims: [Range<Int64>],
        windowLength: Int64, length: Int64?, output: (any InOrderOutput)?
    ) {
        self.file = file
        self.output = output
        self.window = ReadingWindow(id: id, length: windowLength, position: offset, isStream: output != nil)
        self.buffer = InOrderBuffer(
            length: Int(min(windowLength, max(length ?? windowLength, 1))), from: offset, claimed: claims,
            alignment: output == nil ? RunningDigest.stateAlignment : 1)
        self.digests = Mutex(Digests(running: digests))
    }

    /// Creates a reader that writes the file's bytes to an output in order.
    convenience init(
        to output: any InOrderOutput, _ file: any StorageFile, id: UInt64, algorithms: [ExpectedDigest.Algorithm],
        windowLength: Int64, length: Int64?
    ) {
        self.init(
            file, id: id, digests: algorithms.map { RunningDigest($0) }, from: 0, claims: [],
            windowLength: windowLength, length: length, output: output)
    }

    /// Creates a reader that computes digests; `nil` if it is not worthwhile.
    ///
    /// - Parameters:
    ///   - claims: The ranges that are written already, in order.
    ///   - states: The digest states that the manifest recorded.
    convenience init?(
        _ file: any StorageFile, id: UInt64, algorithms: [ExpectedDigest.Algorithm], states: [DigestState],
        claims: [Range<Int64>], windowLength: Int64, length: Int64
    ) {
        // Reading a short file again is faster than this setup.
        guard !algorithms.isEmpty, length > windowLength / 8 else { return nil }
        let frontier = claims.first.map { $0.lowerBound == 0 ? $0.upperBound : 0 } ?? 0
        var digests = algorithms.map { RunningDigest($0) }
        var offset: Int64 = 0
        let known = states.filter { $0.offset <= frontier }.compactMap { state in
            RunningDigest(state).map { (state.offset, $0) }
        }
        let restored = algorithms.compactMap { algorithm in known.first { $0.1.algorithm == algorithm } }
        if restored.count == algorithms.count, let first = restored.first, restored.allSatisfy({ $0.0 == first.0 }) {
            digests = restored.map(\.1)
            offset = first.0
        }
        guard frontier - offset <= Self.arrearsMax * windowLength else { return nil }
        self.init(
            file, id: id, digests: digests, from: offset, claims: claims, windowLength: windowLength, length: length,
            output: nil)
    }

    // MARK: While segments are written

    func put(_ bytes: UnsafeRawBufferPointer, at offset: Int64) { self.buffer.put(bytes, at: offset) }

    func claim(_ range: Range<Int64>) { self.buffer.claim(range) }

    /// Releases bytes to the reader before they are claimed, if they go to an output.
    func show(_ range: Range<Int64>) {
        if self.window.isStream { self.buffer.claim(range) }
    }

    /// Waits for room, if the bytes go to a descriptor and are stored nowhere else.
    func room(upTo end: Int64) async throws {
        if self.window.isStream { try await self.buffer.room(upTo: end) }
    }

    /// Removes bytes that are no longer trusted. If they were already taken, the digests become invalid.
    func withdraw(_ ranges: [Range<Int64>]) {
        if self.buffer.withdraw(ranges) { self.spoil() }
    }

    /// Whether bytes that were taken turned out to belong to another file than the rest.
    var isSpoiled: Bool { self.digests.withLock { $0.isSpoiled } }

    /// The digests' states, for the manifest.
    var states: [DigestState] {
        self.digests.withLock { digests in
            // Between two runs the states are those at the buffer's position.
            let offset = self.buffer.position
            return digests.isSpoiled ? [] : digests.running.compactMap { $0.saved(at: offset) }
        }
    }

    /// Ends the reader.
    ///
    /// - Returns: Whether any bytes were taken.
    @discardableResult
    func close() -> Bool {
        self.digests.withLock { $0.isClosed = true }
        let hasBegun = self.buffer.close()
        self.output?.wake()
        self.wake()
        return hasBegun
    }

    private var isClosed: Bool { self.digests.withLock { $0.isClosed } }

    // MARK: Reading

    /// Reads until the file has ended or the reader is closed.
    ///
    /// - Parameter report: Called at intervals with the end of the bytes taken.
    /// - Throws: ``DownloadError`` if the bytes could not be written to the output.
    func run(_ report: (Int64) -> Void) async throws {
        var reported = self.window.position
        while let run = await self.buffer.next() {
            do {
                try await self.take(run)
            } catch {
                let wasClosed = self.isClosed
                if self.window.isStream { self.digests.withLock { $0.failure = error } }
                self.spoil()
                self.close()
                // A stored file is read again at the end, and an error then is reported. `.max` lets the fetches
                // continue.
                report(.max)
                guard self.window.isStream, !wasClosed else { return }
                throw error
            }
            if run.range.upperBound - reported >= self.window.length / Self.reportsPerWindow {
                reported = run.range.upperBound
                report(reported)
            }
        }
        // Ended, closed or cancelled.
        self.close()
    }

    private func take(_ run: InOrderBuffer.Run) async throws {
        guard run.bytes == nil else {
            if let bytes = run.bytes { try await self.output?.write(bytes) { !self.isClosed && !Task.isCancelled } }
            self.finish(run, run.bytes)
            return
        }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: run.range.count, alignment: 4096)
        defer { buffer.deallocate() }
        let count = try self.file.readFully(into: buffer, at: run.range.lowerBound)
        guard count == buffer.count else {
            throw DownloadError(
                .integrity, "byte \(run.range.lowerBound + Int64(count)) is not on disk as it was written")
        }
        self.finish(run, UnsafeRawBufferPointer(buffer))
    }

    /// Updates the digests and the position together, under one lock.
    private func finish(_ run: InOrderBuffer.Run, _ bytes: UnsafeRawBufferPointer?) {
        self.digests.withLock { digests in
            for index in digests.running.indices { bytes.map { digests.running[index].update($0) } }
            self.buffer.finish(run)
        }
    }

    private func spoil() {
        self.digests.withLock { $0.isSpoiled = true }
        self.wake()
    }

    // MARK: At the end

    /// Waits until everything was read, and returns the digests by algorithm; empty if they are invalid.
    ///
    /// - Throws: ``DownloadError`` with code `cancelled` once interrupted, or the error that kept the bytes from being
    ///   written to the output.
    func finish(length: Int64, unless interruption: Latch) async throws -> [ExpectedDigest.Algorithm: String] {
        self.buffer.end(at: length)
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let goesOn = self.digests.withLock { digests in
                // `wake()` is called after the latch is raised, so the check cannot miss it.
                if digests.isSpoiled || digests.isClosed || interruption.isRaised || self.buffer.position >= length {
                    return true
                }
                digests.waiter = continuation
                return false
            }
            if goesOn { continuation.resume() }
        }
        return try self.digests.withLock { digests in
            if let failure = digests.failure { throw failure }
            if digests.isSpoiled { return [:] }
            if self.buffer.position < length { throw DownloadError(.cancelled, "verifying was interrupted") }
            return Dictionary(uniqueKeysWithValues: digests.running.map { ($0.algorithm, $0.hex) })
        }
    }

    /// Resumes ``finish(length:unless:)``.
    func wake() {
        let waiter = self.digests.withLock { digests in
            defer { digests.waiter = nil }
            return digests.waiter
        }
        waiter?.resume()
    }
}
