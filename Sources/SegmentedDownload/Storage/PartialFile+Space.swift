import SegmentedDownloadCore
import Synchronization

/// Whether the disk has room for the file.
extension PartialFile {
    /// 64 MiB: a stream without a known end leaves this much of the disk free.
    static let reserveLength: Int64 = 64 << 20

    /// Throws if a file of unknown length has filled the disk up to the reserve. For other files space was reserved.
    func keepReserve() throws(StorageError) {
        guard !self.log.withLock({ $0.isRecorded }),
            try self.storage.freeSpace(in: self.paths.directory) < Self.reserveLength
        else { return }
        throw StorageError(
            call: "write", path: self.paths.part, errno: 0, condition: .noSpace,
            text: "the server does not state the file's length, and 64 MiB of the disk are kept free")
    }

    /// Throws if a file of this length does not fit on the disk. Space that the part has reserved counts as free.
    ///
    /// - Parameter length: `nil` if it is unknown.
    func checkSpace(for length: Int64?) throws {
        guard let length else { return }
        let free = try self.storage.freeSpace(in: self.paths.directory)
        let reserved = try self.file.status().allocated
        guard length <= free.addingReportingOverflow(reserved).partialValue || free == .max else {
            throw DownloadError(
                .space,
                "the file needs \(length) bytes, and \(free + reserved) are free in "
                    + "\(self.paths.directory.printable). Nothing was written",
                remedy: .freeSpaceOrChooseDirectory)
        }
    }
}
