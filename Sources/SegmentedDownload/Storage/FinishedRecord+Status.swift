import SegmentedDownloadCore

/// Whether a file still has the content that its record describes.
extension FinishedRecord {
    /// Whether a file's status is as it was recorded. This proves nothing about the content.
    func fits(_ status: StorageStatus) -> Bool { status.length == self.length && status.modified == self.modified }

    /// Whether a file's status proves that it has the content.
    ///
    /// An equal modification time alone proves nothing: programs set it, and some file systems store whole seconds. So the
    /// file must not have changed at all since it got its name (`ctime`). Besides, it must have been written in an earlier unit
    /// of the file system's clock than it was named, because a later write in that unit would leave both times as they are.
    /// A change within one unit after the naming, by a program that restores the modification time, is not seen.
    func proves(_ status: StorageStatus) -> Bool {
        guard self.isSynced, self.fits(status), let changed = self.changed, changed >= 0
        else { return false }
        let resolution = Self.resolution(modified: self.modified, changed: changed)
        // Adding ``changed`` to the record is itself a change.
        let (age, overflow) = status.changed.subtractingReportingOverflow(changed)
        return !overflow && (0...resolution).contains(age) && self.modified < changed - changed % resolution
    }

    /// Whether a file has the content. It is read if its status does not prove that.
    ///
    /// - Parameter interruption: Once raised, reading ends with a failure of code `cancelled`.
    func describes(
        _ file: any StorageFile, _ status: StorageStatus, unless interruption: Latch? = nil
    ) throws -> Bool {
        guard status.length == self.length else { return false }
        if self.proves(status) { return true }
        var crc = CRC32()
        _ = try file.read(length: status.length, unless: interruption) { crc.update($0) }
        return crc == self.crc
    }

    /// The longest unit of a file system's clock that two of its times are compatible with, in nanoseconds.
    ///
    /// 10 ms is the longest tick of Linux, and the unit of exFAT. A second is that of HFS+ and of ext4 with small inodes, and
    /// two seconds that of FAT.
    private static func resolution(modified: Int64, changed: Int64) -> Int64 {
        let second: Int64 = 1_000_000_000
        guard modified % second == 0, changed % second == 0 else { return second / 100 }
        return modified % (2 * second) == 0 && changed % (2 * second) == 0 ? 2 * second : second
    }
}
