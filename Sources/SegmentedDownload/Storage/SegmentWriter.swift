import SegmentedDownloadCore

/// Writes one lease's bytes in order and claims them piece by piece, no piece reaching over a block's end.
package struct SegmentWriter {
    /// 512 KiB: what a killed process has to fetch again per segment, at most; 64 bytes of manifest for each MiB.
    static let claimLength = BlockLayout.blockLength / 2

    private let part: PartialFile
    private let mark: UInt8
    /// Claims not made yet, where they wait for the end.
    private var held: [Claim]?
    /// Where the bytes begin that belong to no claim yet.
    private var claimedUpTo: Int64
    package private(set) var position: Int64
    private var crc = CRC32()

    /// - Parameters:
    ///   - mark: of the source the bytes are from, see ``Claim/mark``.
    ///   - holdsClaims: whether nothing is claimed before ``finish()``.
    package init(part: PartialFile, from offset: Int64, mark: UInt8 = 0, holdsClaims: Bool = false) {
        self.part = part
        self.mark = mark
        self.held = holdsClaims ? [] : nil
        self.claimedUpTo = offset
        self.position = offset
    }

    /// Writes all of the bytes, then claims the pieces they complete.
    package mutating func write(_ bytes: UnsafeRawBufferPointer) throws(StorageError) {
        try self.part.write(bytes, at: self.position)
        let start = self.position
        var rest = bytes[...]
        while !rest.isEmpty {
            let pieceEnd = self.position - self.position % Self.claimLength + Self.claimLength
            let run = rest.prefix(Int(clamping: pieceEnd - self.position))
            self.crc.update(UnsafeRawBufferPointer(rebasing: run))
            self.position += Int64(run.count)
            rest = rest.dropFirst(run.count)
            if self.position == pieceEnd {
                try self.part.keepReserve()
                try self.flush()
            }
        }
        // Who has the bytes handed on need not wait for a piece to be whole.
        if self.held == nil { self.part.reader?.show(start..<self.position) }
    }

    /// Waits for room for so many bytes, where they are handed on to somebody who may be slow.
    func room(for count: Int) async throws {
        try await self.part.reader?.room(upTo: self.position + Int64(count))
    }

    /// Claims what is written and not claimed yet, or notes it to be claimed at the end.
    private mutating func flush() throws(StorageError) {
        guard self.position > self.claimedUpTo else { return }
        let claim = Claim(
            offset: self.claimedUpTo, length: self.position - self.claimedUpTo, crc: self.crc, mark: self.mark)
        if self.held == nil { try self.part.claim(claim) } else { self.held?.append(claim) }
        self.claimedUpTo = self.position
        self.crc = CRC32()
    }

    /// Claims all that is written.
    package mutating func finish() throws(StorageError) {
        try self.flush()
        for claim in self.held ?? [] { try self.part.claim(claim) }
        self.held = nil
    }

    /// Whether bytes agree with those on disk at an offset; the first that does not, if any.
    package func firstDifference(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(StorageError) -> Int64? {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        defer { buffer.deallocate() }
        let count = try self.part.file.readFully(into: buffer, at: offset)
        for index in 0..<bytes.count where index >= count || buffer[index] != bytes[index] {
            return offset + Int64(index)
        }
        return nil
    }
}
