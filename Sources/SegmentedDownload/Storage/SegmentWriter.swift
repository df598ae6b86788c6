import SegmentedDownloadCore

/// Writes the bytes of one lease in order, and claims them in pieces that do not cross the end of a block.
package struct SegmentWriter {
    /// 512 KiB: at most this much of a segment is fetched again after a crash. The manifest grows by 64 bytes per MiB.
    static let claimLength = BlockLayout.blockLength / 2

    private let part: PartialFile
    private let mark: UInt8
    /// Claims that are held back until the end; `nil` if they are made at once.
    private var held: [Claim]?
    /// The end of the bytes that belong to a claim.
    private var claimedUpTo: Int64
    package private(set) var position: Int64
    private var crc = CRC32()

    /// Creates a writer.
    ///
    /// - Parameters:
    ///   - mark: The mark of the source that the bytes come from; see ``Claim/mark``.
    ///   - holdsClaims: Whether claims are held back until ``finish()``.
    package init(part: PartialFile, from offset: Int64, mark: UInt8 = 0, holdsClaims: Bool = false) {
        self.part = part
        self.mark = mark
        self.held = holdsClaims ? [] : nil
        self.claimedUpTo = offset
        self.position = offset
    }

    /// Writes all of the bytes, then claims the pieces that are complete.
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
        // A reader that writes to a descriptor gets the bytes before the piece is complete.
        if self.held == nil { self.part.reader?.show(start..<self.position) }
    }

    /// Waits until the in-order reader has room for `count` bytes, if they go to a descriptor.
    func room(for count: Int) async throws {
        try await self.part.reader?.room(upTo: self.position + Int64(count))
    }

    /// Claims the bytes that were written but not claimed, or adds the claim to those held back.
    private mutating func flush() throws(StorageError) {
        guard self.position > self.claimedUpTo else { return }
        let claim = Claim(
            offset: self.claimedUpTo, length: self.position - self.claimedUpTo, crc: self.crc, mark: self.mark)
        if self.held == nil { try self.part.claim(claim) } else { self.held?.append(claim) }
        self.claimedUpTo = self.position
        self.crc = CRC32()
    }

    /// Claims all bytes that were written.
    package mutating func finish() throws(StorageError) {
        try self.flush()
        for claim in self.held ?? [] { try self.part.claim(claim) }
        self.held = nil
    }

    /// A received byte that differs from the one on disk.
    package struct Difference: Hashable, Sendable {
        package let offset: Int64
        package let byte: UInt8
    }

    /// The first of the received bytes that differs from the disk; `nil` if all agree.
    package func firstDifference(
        _ bytes: UnsafeRawBufferPointer, at offset: Int64
    ) throws(StorageError) -> Difference? {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        defer { buffer.deallocate() }
        let count = try self.part.file.readFully(into: buffer, at: offset)
        for index in 0..<bytes.count where index >= count || buffer[index] != bytes[index] {
            return Difference(offset: offset + Int64(index), byte: bytes[index])
        }
        return nil
    }
}
