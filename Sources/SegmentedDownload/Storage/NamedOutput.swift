import SegmentedDownloadCore
import Synchronization

#if canImport(Glibc)
    import Glibc
#else
    import Musl
#endif

/// A FIFO or a character device that a file's bytes are written to, by its path.
///
/// It is opened for the first byte, and a FIFO only once another process reads it. It is closed when the download has ended. So a
/// process can read several FIFOs one after the other.
final class NamedOutput: InOrderOutput {
    private let path: String
    private let clock: any EngineClock
    private let output = Mutex<OutputDescriptor?>(nil)
    private let count = Atomic<Int>(0)

    /// 20 ms: how long the task sleeps before it looks for a reader again.
    private static let pause: Duration = .milliseconds(20)

    init(_ path: String, clock: any EngineClock) {
        self.path = path
        self.clock = clock
    }

    var hasWritten: Bool { self.count.load(ordering: .relaxed) > 0 }

    /// - Throws: As ``OutputDescriptor/write(_:while:)``; ``DownloadError`` with code `file` also if it cannot be opened.
    func write(_ bytes: UnsafeRawBufferPointer, while isWanted: () -> Bool) async throws {
        try await self.begin(while: isWanted)
        guard let output = self.output.withLock({ $0 }) else {
            throw DownloadError(.cancelled, "writing was interrupted")
        }
        self.count.store(1, ordering: .relaxed)
        try await output.write(bytes, while: isWanted)
    }

    func begin(while isWanted: () -> Bool) async throws {
        while self.output.withLock({ $0 == nil }) {
            guard isWanted() else { throw DownloadError(.cancelled, "writing was interrupted") }
            do throws(StorageError) {
                try self.openOnce()
            } catch {
                // There is no reader.
                guard error.errno == ENXIO else {
                    throw DownloadError(
                        .file, "\(self.path.printable) cannot be opened: \(error.text)", errno: error.errno)
                }
                try? await self.clock.sleep(until: self.clock.now + Self.pause)
            }
        }
    }

    private func openOnce() throws(StorageError) {
        let descriptor = try POSIXStorage.check("open", self.path) {
            // A FIFO without a reader is an error then, and does not block the thread.
            SystemCalls.openFile(self.path, O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
        }
        self.output.withLock { $0 = OutputDescriptor(owning: descriptor, clock: self.clock) }
    }

    func wake() {}

    /// Closes the output. If nothing was written to a FIFO, a process that waits for it gets its end.
    func end() {
        if !self.hasWritten, self.output.withLock({ $0 == nil }) { try? self.openOnce() }
        self.output.withLock { $0 = nil }
    }
}
