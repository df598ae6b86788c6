import SegmentedDownloadCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A part's file that is in memory until it is stored in another file, which is used from then on.
///
/// Its lock is never held during a system call, so that a fetch does not wait for the disk.
package final class MemoryFile: StorageFile {
    private final class Bytes: Sendable {
        /// The bytes. They change only while the file's lock is held.
        nonisolated(unsafe) let buffer: UnsafeMutableRawBufferPointer
        private let freed: @Sendable () -> Void

        /// Zeros, like the bytes of a file that were not written; `nil` if there is no memory for them.
        init?(count: Int, freed: @escaping @Sendable () -> Void) {
            guard let start = calloc(count, 1) else { return nil }
            self.buffer = UnsafeMutableRawBufferPointer(start: start, count: count)
            self.freed = freed
        }

        deinit {
            free(self.buffer.baseAddress)
            self.freed()
        }
    }

    private struct State {
        /// `nil` once the bytes are stored, or the file is closed.
        var bytes: Bytes?
        /// What was written and is not in the other file, in the order it was written.
        var unstored: [Range<Int>] = []
        /// The file that the bytes were stored in.
        var file: (any StorageFile)?
        /// Called once, when the file is closed.
        var closed: (@Sendable () -> Void)?
    }

    /// 32: with more ranges than this, what lies between them is stored too.
    private static let rangesMax = 32

    private let length: Int
    private let state: Mutex<State>

    /// Creates a file; `nil` if there is no memory for it.
    ///
    /// - Parameters:
    ///   - freed: Called once, when the memory is free again.
    ///   - closed: Called once, when the file is closed.
    init?(length: Int, freed: @escaping @Sendable () -> Void, closed: @escaping @Sendable () -> Void) {
        guard let bytes = Bytes(count: length, freed: freed) else {
            freed()
            closed()
            return nil
        }
        self.length = length
        self.state = Mutex(State(bytes: bytes, closed: closed))
    }

    deinit { self.end() }

    private func end() {
        let (bytes, closed) = self.state.withLock { state in (state.bytes.take(), state.closed.take()) }
        // Freed outside of the lock.
        withExtendedLifetime(bytes) {}
        closed?()
    }

    /// Whether the bytes are only in memory.
    var isInMemory: Bool { self.state.withLock { $0.bytes != nil } }

    /// Writes the bytes to a file, which is used from then on.
    ///
    /// If it throws, the bytes are in memory as before.
    func store(in file: any StorageFile) throws(StorageError) {
        var written: [Range<Int>] = []
        // Bytes that are written meanwhile are stored by the next round.
        while let next = self.takeUnstored(orUse: file) {
            written += next.map(\.range)
            do throws(StorageError) {
                for (range, bytes) in next { try file.writeFully(bytes, at: Int64(range.lowerBound)) }
            } catch {
                self.state.withLock { $0.unstored = written + $0.unstored }
                throw error
            }
        }
    }

    /// The bytes that are to be stored next. If none are left, a file is used from now on, and the result is `nil`.
    private func takeUnstored(orUse file: any StorageFile) -> [(range: Range<Int>, bytes: [UInt8])]? {
        // Freed outside of the lock.
        var freed: Bytes?
        defer { withExtendedLifetime(freed) {} }
        return self.state.withLock { state in
            defer { state.unstored = [] }
            guard let bytes = state.bytes, !state.unstored.isEmpty else {
                state.file = file
                freed = state.bytes.take()
                return nil
            }
            return state.unstored.map { ($0, Array(bytes.buffer[$0])) }
        }
    }

    /// Uses a file that has all of the bytes from now on.
    func use(_ file: any StorageFile) {
        let bytes = self.state.withLock { state in
            state.file = file
            return state.bytes.take()
        }
        // Freed outside of the lock.
        withExtendedLifetime(bytes) {}
    }

    /// Writes all of the bytes to a file. Nothing may be written meanwhile.
    func copy(to file: any StorageFile) throws(StorageError) {
        guard let bytes = self.state.withLock({ $0.bytes }) else { throw Self.error("copy") }
        try file.writeFully(UnsafeRawBufferPointer(bytes.buffer), at: 0)
    }

    package func write(_ source: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        var isWritten = false
        let end = offset + Int64(source.count)
        let file = self.state.withLock { state -> (any StorageFile)? in
            guard let bytes = state.bytes, offset >= 0, end <= Int64(self.length) else { return state.file }
            let range = Int(offset)..<Int(end)
            UnsafeMutableRawBufferPointer(rebasing: bytes.buffer[range]).copyMemory(from: source)
            if let last = state.unstored.last, last.upperBound == range.lowerBound {
                state.unstored[state.unstored.count - 1] = last.lowerBound..<range.upperBound
            } else {
                state.unstored.append(range)
                if state.unstored.count > Self.rangesMax { state.unstored = [state.unstored.hull] }
            }
            isWritten = true
            return nil
        }
        if let file { return try file.write(source, at: offset) }
        guard isWritten else { throw Self.error("write") }
        return source.count
    }

    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        // Used before the call returns.
        nonisolated(unsafe) let buffer = buffer
        let (count, file) = self.state.withLock { state -> (Int, (any StorageFile)?) in
            guard let bytes = state.bytes, offset >= 0, offset < Int64(self.length) else { return (0, state.file) }
            let rest = bytes.buffer[Int(offset)...].prefix(buffer.count)
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest))
            return (rest.count, nil)
        }
        if let file { return try file.read(into: buffer, at: offset) }
        return count
    }

    package func writeHeldBack(in range: Range<Int64>) throws(StorageError) {
        try self.stored?.writeHeldBack(in: range)
    }

    private var stored: (any StorageFile)? { self.state.withLock { $0.file } }

    /// The stored file, for what a file in memory does not have.
    private func stored(for call: String) throws(StorageError) -> any StorageFile {
        guard let file = self.stored else { throw Self.error(call) }
        return file
    }

    private static func error(_ call: String) -> StorageError {
        StorageError(call: call, path: "a file in memory", errno: 0, condition: .unsupported, text: "it is not stored")
    }

    package func truncate(to length: Int64) throws(StorageError) {
        try self.stored(for: "truncate").truncate(to: length)
    }

    package func allocate(_ range: Range<Int64>) throws(StorageError) -> Bool {
        try self.stored(for: "allocate").allocate(range)
    }

    package func firstHole(from offset: Int64) throws(StorageError) -> Int64 {
        try self.stored(for: "seek").firstHole(from: offset)
    }

    package func synchronize(metadata: Bool) async throws(StorageError) {
        try await self.stored(for: "sync").synchronize(metadata: metadata)
    }

    package func status() throws(StorageError) -> StorageStatus { try self.stored(for: "stat").status() }

    package func tryLock() throws(StorageError) -> StorageLock { try self.stored(for: "lock").tryLock() }

    package func attribute(_ name: String) -> [UInt8]? { self.stored?.attribute(name) }

    package func setAttribute(_ name: String, _ value: [UInt8]) throws(StorageError) -> Bool {
        try self.stored(for: "describe").setAttribute(name, value)
    }

    package func removeAttribute(_ name: String) throws(StorageError) {
        try self.stored(for: "describe").removeAttribute(name)
    }

    package func setPermissions(_ permissions: UInt32) throws(StorageError) {
        try self.stored(for: "permit").setPermissions(permissions)
    }

    package func setModified(_ seconds: Int64) throws(StorageError) {
        try self.stored(for: "date").setModified(seconds)
    }

    /// Closes the stored file, or gives up the bytes if there is none.
    package func close() {
        self.stored?.close()
        self.end()
    }
}

extension [Range<Int>] {
    /// The range from the first to the last of these bytes.
    fileprivate var hull: Range<Int> {
        (self.map(\.lowerBound).min() ?? 0)..<(self.map(\.upperBound).max() ?? 0)
    }
}
