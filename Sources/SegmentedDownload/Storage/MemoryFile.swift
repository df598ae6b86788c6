import SegmentedDownloadCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A part's file that is in memory until it is stored. From then on the stored file answers every call.
///
/// No lock is held during a system call, so that a fetch never waits for the disk.
final class MemoryFile: StorageFile {
    private struct State {
        /// The bytes that were written and are not in the stored file, in the order they were written.
        var unstored: [Range<Int>] = []
        /// The file that the bytes were stored in.
        var file: (any StorageFile)?
    }

    private let length: Int
    // The state's lock orders its uses: bytes are read after the call that wrote them has ended.
    private nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer
    private let release: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameter release: Called once the memory is free again.
    init(length: Int, release: @escaping @Sendable () -> Void) {
        self.length = length
        self.release = release
        guard let start = calloc(length, 1) else { preconditionFailure("there is no memory for \(length) bytes") }
        self.bytes = UnsafeMutableRawBufferPointer(start: start, count: length)
    }

    deinit {
        free(self.bytes.baseAddress)
        self.release()
    }

    /// Whether the bytes are only in memory.
    var isHeld: Bool { self.state.withLock { $0.file == nil } }

    /// Writes the bytes to a file, which answers every call from then on.
    ///
    /// If it throws, the bytes are in memory as before.
    func store(in file: any StorageFile) throws(StorageError) {
        var written: [Range<Int>] = []
        while true {
            // Bytes that are written meanwhile are stored by the next round.
            let next = self.state.withLock { state -> [Range<Int>] in
                defer { state.unstored = [] }
                if state.unstored.isEmpty { state.file = file }
                return state.unstored
            }
            guard !next.isEmpty else { return }
            written += next
            do throws(StorageError) {
                for range in next {
                    try file.writeFully(
                        UnsafeRawBufferPointer(rebasing: self.bytes[range]), at: Int64(range.lowerBound))
                }
            } catch {
                self.state.withLock { $0.unstored = written + $0.unstored }
                throw error
            }
        }
    }

    /// Has a file that all of the bytes were copied to answer every call from now on.
    func become(_ file: any StorageFile) {
        self.state.withLock { $0.file = file }
    }

    /// Writes all of the bytes to a file, which does not take their place.
    func copy(to file: any StorageFile) throws(StorageError) {
        try file.writeFully(UnsafeRawBufferPointer(self.bytes), at: 0)
    }

    func write(_ source: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        let file = self.state.withLock { state -> (any StorageFile)? in
            guard state.file == nil, offset >= 0, offset + Int64(source.count) <= Int64(self.length) else {
                return state.file
            }
            let range = Int(offset)..<Int(offset) + source.count
            UnsafeMutableRawBufferPointer(rebasing: self.bytes[range]).copyMemory(from: source)
            if let last = state.unstored.last, last.upperBound == range.lowerBound {
                state.unstored[state.unstored.count - 1] = last.lowerBound..<range.upperBound
            } else {
                state.unstored.append(range)
            }
            return nil
        }
        if let file { return try file.write(source, at: offset) }
        guard offset + Int64(source.count) <= Int64(self.length) else { throw Self.error("write", .other) }
        return source.count
    }

    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(StorageError) -> Int {
        if let file = self.stored { return try file.read(into: buffer, at: offset) }
        guard offset >= 0, offset < Int64(self.length) else { return 0 }
        let rest = self.bytes[Int(offset)...].prefix(buffer.count)
        buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: rest))
        return rest.count
    }

    private var stored: (any StorageFile)? { self.state.withLock { $0.file } }

    /// The stored file, for what a file in memory does not have.
    private func stored(for call: String) throws(StorageError) -> any StorageFile {
        guard let file = self.stored else { throw Self.error(call, .unsupported) }
        return file
    }

    private static func error(_ call: String, _ condition: StorageError.Condition) -> StorageError {
        StorageError(call: call, path: "a file in memory", errno: 0, condition: condition, text: "it is not stored")
    }

    func truncate(to length: Int64) throws(StorageError) { try self.stored(for: "truncate").truncate(to: length) }

    func allocate(_ length: Int64) throws(StorageError) -> Bool {
        try self.stored(for: "allocate").allocate(length)
    }

    func firstHole() throws(StorageError) -> Int64 { try self.stored(for: "seek").firstHole() }

    func synchronize(metadata: Bool) async throws(StorageError) {
        try await self.stored(for: "sync").synchronize(metadata: metadata)
    }

    func status() throws(StorageError) -> StorageStatus { try self.stored(for: "stat").status() }

    func tryLock() throws(StorageError) -> StorageLock { try self.stored(for: "lock").tryLock() }

    func attribute(_ name: String) -> [UInt8]? { self.stored?.attribute(name) }

    func setAttribute(_ name: String, _ value: [UInt8]) throws(StorageError) -> Bool {
        try self.stored(for: "describe").setAttribute(name, value)
    }

    func removeAttribute(_ name: String) throws(StorageError) {
        try self.stored(for: "describe").removeAttribute(name)
    }

    func setPermissions(_ permissions: UInt32) throws(StorageError) {
        try self.stored(for: "permit").setPermissions(permissions)
    }

    func setModified(_ seconds: Int64) throws(StorageError) { try self.stored(for: "date").setModified(seconds) }

    func close() { self.stored?.close() }
}
