import SegmentedDownloadCore
import Synchronization

/// The memory that the parts of short files may take until the files are complete.
///
/// A short file needs no part on disk: what a crash can cost is fetched again in the time of a request, and the part, its
/// lock and its manifest cost more system calls than the file itself.
package final class PartMemory: Sendable {
    /// A file up to this length is fetched in about the time that its request takes.
    package static let lengthMax = GroupStateMachine.shortLength

    /// 16 MiB: as many files of the greatest length as are usually fetched at a time.
    package static let totalMax: Int64 = 16 << 20

    private struct State {
        var taken: Int64 = 0
        /// The destinations of the files that began in memory and are not closed. Such a file has no part to lock.
        var names: Set<String> = []
    }

    /// Where a part is begun.
    enum Place {
        case memory(MemoryFile)
        /// The file is too long or empty, or there is no memory left for it.
        case disk
        /// Another file that began in memory has the same destination.
        case taken
    }

    private let state = Mutex(State())
    /// The directories that the files go to.
    let directories = KnownDirectories()

    package init() {}

    /// Creates a file in memory, if possible. Its memory is taken until it is stored or closed, its destination until it
    /// is closed.
    func place(for destination: String, length: Int64) -> Place {
        guard length > 0, length <= Self.lengthMax else { return .disk }
        let place = self.state.withLock { state -> Place? in
            guard !state.names.contains(destination) else { return .taken }
            guard state.taken + length <= Self.totalMax else { return .disk }
            state.taken += length
            state.names.insert(destination)
            return nil
        }
        if let place { return place }
        let file = MemoryFile(
            length: Int(length), freed: { self.state.withLock { $0.taken -= length } },
            closed: { self.state.withLock { _ = $0.names.remove(destination) } })
        return file.map { .memory($0) } ?? .disk
    }
}
