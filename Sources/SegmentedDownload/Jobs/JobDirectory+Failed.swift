import SegmentedDownloadCore

extension JobDirectory {
    /// 64 KiB: a piece in which lists of failures and names are read.
    private static let linesLength = 1 << 16

    /// The lists of failures of the job's tasks, one after the other. An entry that a later run has finished may be
    /// among them while that run has not ended.
    package func failedEntries(_ take: (String) -> Void) throws(DownloadError) {
        do {
            let names = try self.names().filter { $0.kind == .failed }
            for name in names.sorted(by: { ($0.shard.number, $0.run) < ($1.shard.number, $1.run) }) {
                let path = self.path(of: name)
                let file = try self.storage.open(path, .read)
                defer { file.close() }
                let status = try file.status()
                try self.storage.checkTrust(status, path)
                try Self.lines(of: file) { take(String(decoding: $0, as: UTF8.self)) }
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// Calls `take` with whole lines of a file, one or more at a time. A torn line at the end belongs to a run that was killed.
    static func lines(of file: any StorageFile, _ take: (ArraySlice<UInt8>) -> Void) throws(StorageError) {
        var rest: [UInt8] = []
        var offset: Int64 = 0
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.linesLength, alignment: 1)
        defer { piece.deallocate() }
        while true {
            let count = try file.readFully(into: piece, at: offset)
            guard count > 0 else { break }
            offset += Int64(count)
            rest += piece[..<count]
            guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { continue }
            take(rest[...end])
            rest.removeSubrange(...end)
        }
    }
}
