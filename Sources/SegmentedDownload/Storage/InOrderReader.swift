import SegmentedDownloadCore
import Synchronization

/// Reads a file in order while its segments are being written in any: computes digests, and hands the bytes on where somebody
/// wants them.
///
/// Nothing is read again once the last byte is there, and how far the digests have come goes into the manifest.
final class InOrderReader: Sendable {
    private struct Digests {
        var running: [RunningDigest]
        /// What was taken turned out to be of another file: they say nothing.
        var isSpoiled = false
        /// Why the bytes could not be handed on.
        var failure: (any Error)?
        var waiter: CheckedContinuation<Void, Never>?
        var isClosed = false
    }

    /// 48 MiB: with what connections have in hand, 64 MiB lie between the network and who reads. Each of 16 connections is asked for
    /// 2 MiB at a time then, which takes it long enough for the request's cost to vanish.
    static let windowLength: Int64 = 48 << 20

    /// An unread beginning this many windows long is read at the end, with all else: to catch up with it first would keep the network
    /// waiting.
    private static let arrearsMax: Int64 = 4

    /// How many times in a window it is told how far the reading has come.
    private static let reportsPerWindow: Int64 = 32

    let window: ReadingWindow
    private let file: any StorageFile
    private let output: OutputDescriptor?
    private let buffer: InOrderBuffer
    private let digests: Mutex<Digests>

    /// - Parameters:
    ///   - claims: what is written already, in order.
    ///   - states: how far digests had come before.
    ///   - output: where the bytes are handed on to, if anywhere. They are nowhere else then.
    private init(
        _ file: any StorageFile, id: UInt64, digests: [RunningDigest], from offset: Int64, claims: [Range<Int64>],
        windowLength: Int64, length: Int64?, output: OutputDescriptor?
    ) {
        self.file = file
        self.output = output
        self.window = ReadingWindow(id: id, length: windowLength, position: offset, isStream: output != nil)
        self.buffer = InOrderBuffer(
            length: Int(min(windowLength, max(length ?? windowLength, 1))), from: offset, claimed: claims,
            alignment: output == nil ? RunningDigest.stateAlignment : 1)
        self.digests = Mutex(Digests(running: digests))
    }

    /// Hands a file's bytes on, in order.
    convenience init(
        to output: OutputDescriptor, _ file: any StorageFile, id: UInt64, algorithms: [ExpectedDigest.Algorithm],
        windowLength: Int64, length: Int64?
    ) {
        self.init(
            file, id: id, digests: algorithms.map { RunningDigest($0) }, from: 0, claims: [],
            windowLength: windowLength, length: length, output: output)
    }

    /// Computes a file's digests while it is fetched; absent where that is not worth it.
    ///
    /// - Parameters:
    ///   - claims: what is written already, in order.
    ///   - states: how far digests had come over it.
    convenience init?(
        _ file: any StorageFile, id: UInt64, algorithms: [ExpectedDigest.Algorithm], states: [DigestState],
        claims: [Range<Int64>], windowLength: Int64, length: Int64
    ) {
        // A short file is read again sooner than all this is set up.
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

    /// These bytes will be claimed: they may be handed on.
    func show(_ range: Range<Int64>) {
        if self.window.isStream { self.buffer.claim(range) }
    }

    /// Waits for room, where bytes are nowhere else than here.
    func room(upTo end: Int64) async throws {
        if self.window.isStream { try await self.buffer.room(upTo: end) }
    }

    /// These bytes are not believed any more.
    func withdraw(_ ranges: [Range<Int64>]) {
        if self.buffer.withdraw(ranges) { self.spoil() }
    }

    /// Whether what was taken is of another file than the rest.
    var isSpoiled: Bool { self.digests.withLock { $0.isSpoiled } }

    /// How far the digests have come, as it is written down.
    var states: [DigestState] {
        self.digests.withLock { digests in
            // Between two runs they are where the buffer is.
            let offset = self.buffer.position
            return digests.isSpoiled ? [] : digests.running.compactMap { $0.saved(at: offset) }
        }
    }

    /// Ends it. Returns whether anything was taken to be handed on.
    @discardableResult
    func close() -> Bool {
        self.digests.withLock { $0.isClosed = true }
        let hasBegun = self.buffer.close()
        self.wake()
        return hasBegun
    }

    private var isClosed: Bool { self.digests.withLock { $0.isClosed } }

    // MARK: Reading

    /// Reads until the file has ended or the reader is closed.
    ///
    /// - Parameter report: hears now and then up to where bytes were taken.
    /// - Throws: ``Failure`` where the bytes could not be handed on.
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
                // A file is read again at the end, and that tells what is wrong with it. Until then nobody waits for this.
                report(.max)
                guard self.window.isStream, !wasClosed else { return }
                throw error
            }
            if run.range.upperBound - reported >= self.window.length / Self.reportsPerWindow {
                reported = run.range.upperBound
                report(reported)
            }
        }
        // Ended, closed or cancelled: nobody waits for more.
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
            throw Failure(.integrity, "byte \(run.range.lowerBound + Int64(count)) is not on disk as it was written")
        }
        self.finish(run, UnsafeRawBufferPointer(buffer))
    }

    /// Digests and position go on together, as far as anybody sees.
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

    /// Waits until everything was read, and returns the digests by algorithm; none if they say nothing.
    ///
    /// - Throws: ``Failure`` with code `cancelled` once interrupted, and what kept the bytes from being handed on.
    func finish(length: Int64, unless interruption: Latch) async throws -> [ExpectedDigest.Algorithm: String] {
        self.buffer.end(at: length)
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let goesOn = self.digests.withLock { digests in
                // Raised before whoever waits is woken.
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
            if self.buffer.position < length { throw Failure(.cancelled, "verifying was interrupted") }
            return Dictionary(uniqueKeysWithValues: digests.running.map { ($0.algorithm, $0.hex) })
        }
    }

    /// Has who waits for the end look whether he is to wait.
    func wake() {
        let waiter = self.digests.withLock { digests in
            defer { digests.waiter = nil }
            return digests.waiter
        }
        waiter?.resume()
    }
}
