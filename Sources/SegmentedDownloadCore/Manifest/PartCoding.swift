/// The encoding of a part: its first byte, whether it has a last byte, and its last byte.
extension ByteWriter {
    mutating func write(_ part: DownloadOptions.Part) {
        self.write(part.first)
        self.write(UInt8(part.last == nil ? 0 : 1))
        if let last = part.last { self.write(last) }
    }
}

extension ByteReader {
    /// Returns false if the bytes are not the encoding of a valid part.
    mutating func readPart(into part: inout DownloadOptions.Part?) -> Bool {
        guard let first: Int64 = self.read(), let flag: UInt8 = self.read(), flag <= 1 else { return false }
        var last: Int64?
        if flag == 1 {
            last = self.read()
            if last == nil { return false }
        }
        let read = DownloadOptions.Part(first: first, last: last)
        part = read
        return read.isValid
    }
}
