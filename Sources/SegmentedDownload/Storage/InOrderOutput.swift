/// Where the bytes of a stream go in order: a descriptor, a FIFO, or a consumer in this process.
protocol InOrderOutput: Sendable {
    /// Whether any bytes were written. They cannot be retracted.
    var hasWritten: Bool { get }

    /// Writes all of the bytes. Only one task writes at a time.
    ///
    /// - Parameter isWanted: Called while the reader is slow, at intervals or after ``wake()``; the write ends once it
    ///   returns `false`.
    /// - Throws: ``DownloadError``, with code `cancelled` once `isWanted` returns `false`.
    func write(_ bytes: UnsafeRawBufferPointer, while isWanted: () -> Bool) async throws

    /// Makes a write that waits ask again whether it is wanted.
    func wake()

    /// Opens the output, as the first write does. For a file without bytes.
    func begin(while isWanted: () -> Bool) async throws

    /// Called when the download is at rest. Later writes begin anew.
    func end()
}

extension InOrderOutput {
    func begin(while isWanted: () -> Bool) async throws {}

    func end() {}
}
