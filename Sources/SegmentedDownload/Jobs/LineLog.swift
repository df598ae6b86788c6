import SegmentedDownloadCore
import Synchronization

/// A file of lines that a run of a job appends to. It is created with the first.
final class LineLog: Sendable {
    private struct State {
        var file: (any StorageFile)?
        var length: Int64 = 0
    }

    let path: String
    private let job: JobDirectory
    private let state = Mutex(State())

    init(_ job: JobDirectory, path: String) { (self.job, self.path) = (job, path) }

    deinit { self.state.withLock { $0.file?.close() } }

    var isEmpty: Bool { self.state.withLock { $0.file == nil } }

    func append(_ bytes: [UInt8]) throws(StorageError) {
        try self.state.withLock { state throws(StorageError) in
            let file: any StorageFile = if let open = state.file { open } else { try self.job.create(self.path) }
            state.file = file
            try file.writeFully(bytes, at: state.length)
            state.length += Int64(bytes.count)
        }
    }

    func synchronize() async throws(StorageError) {
        try await self.state.withLock { $0.file }?.synchronize(metadata: false)
    }
}
