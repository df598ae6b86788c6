import Synchronization

/// The memory that the parts of short files may take until the files are complete.
///
/// A short file needs no part on disk: what a crash can cost is fetched again in the time of a request, and the part, its
/// lock and its manifest cost more system calls than the file itself.
package final class PartMemory: Sendable {
    /// 1 MiB: a file up to this length is fetched in about the time that its request takes.
    package static let lengthMax: Int64 = 1 << 20

    /// 16 MiB: as many files of the greatest length as are usually fetched at a time.
    package static let totalMax: Int64 = 16 << 20

    private let taken = Mutex<Int64>(0)

    package init() {}

    /// Creates a file in memory.
    ///
    /// - Returns: `nil` if the file is too long, empty, or there is no memory left for it.
    func file(length: Int64) -> MemoryFile? {
        guard length > 0, length <= Self.lengthMax else { return nil }
        let isFree = self.taken.withLock { taken in
            guard taken + length <= Self.totalMax else { return false }
            taken += length
            return true
        }
        return isFree ? MemoryFile(length: Int(length)) { self.taken.withLock { $0 -= length } } : nil
    }
}
