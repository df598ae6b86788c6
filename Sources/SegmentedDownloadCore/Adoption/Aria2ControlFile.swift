/// A control file of aria2, `NAME.aria2`.
///
/// Its integers are big-endian in version 1. Version 0 has those of the machine, of which only little-endian ones are
/// read. Source: "Control file (*.aria2) format" in aria2's technical notes.
struct Aria2ControlFile {
    /// 16 KiB: the unit in which aria2 records the bytes of a piece that is being fetched.
    private static let blockLength: Int64 = 16 << 10

    let completeLength: Int64
    /// The bytes that are not written yet, ordered and disjoint.
    let missing: [Range<Int64>]

    init?(_ bytes: [UInt8]) {
        var reader = Reader(bytes)
        guard let extensions: UInt32 = reader.read(), let hashLength: UInt32 = reader.read(),
            // Torrents have an extension and a hash. Their pieces may span several files.
            extensions == 0, hashLength == 0,
            let pieceLength: UInt32 = reader.read(), pieceLength > 0,
            let total: UInt64 = reader.read(), let length = Int64(exactly: total), length > 0,
            let _: UInt64 = reader.read(),  // The bytes that were uploaded.
            let bitfieldLength: UInt32 = reader.read()
        else { return nil }
        let piece = Int64(pieceLength)
        let pieceCount = (length - 1) / piece + 1
        guard Int64(bitfieldLength) == (pieceCount - 1) / 8 + 1, let pieces = reader.read(count: Int(bitfieldLength))
        else { return nil }
        // Of the pieces that are not complete, those being fetched have blocks.
        var missing: [Range<Int64>] = []
        func note(_ offset: Int64, _ end: Int64) {
            if let last = missing.last, last.upperBound == offset {
                missing[missing.count - 1] = last.lowerBound..<end
            } else {
                missing.append(offset..<end)
            }
        }
        guard let begun = reader.begunPieces(pieceCount: pieceCount, piece, length) else { return nil }
        for index in 0..<pieceCount where !pieces.isSet(index) {
            let start = index * piece
            let end = min(start + piece, length)
            guard let blocks = begun[index] else {
                note(start, end)
                continue
            }
            for (number, offset) in stride(from: start, to: end, by: Int(Self.blockLength)).enumerated()
            where !blocks.isSet(Int64(number)) {
                note(offset, min(offset + Self.blockLength, end))
            }
        }
        self.completeLength = length
        self.missing = missing
    }

    /// Reads integers in the byte order of the file's version.
    private struct Reader {
        private var bytes: ByteReader
        private let isLittleEndian: Bool

        init(_ bytes: [UInt8]) {
            var reader = ByteReader(bytes[...])
            let version: UInt16? = reader.read()
            self.isLittleEndian = version == 0
            // An unknown version has no content.
            self.bytes = version == 0 || version == UInt16(1).byteSwapped ? reader : ByteReader([])
        }

        mutating func read<Value: FixedWidthInteger>() -> Value? {
            let value: Value? = self.bytes.read()
            return self.isLittleEndian ? value : value?.byteSwapped
        }

        mutating func read(count: Int) -> [UInt8]? { self.bytes.read(count: count) }

        /// The blocks of the pieces that are being fetched, by the number of the piece. Nil if they are malformed.
        mutating func begunPieces(pieceCount: Int64, _ piece: Int64, _ length: Int64) -> [Int64: [UInt8]]? {
            guard let count: UInt32 = self.read() else { return nil }
            var begun: [Int64: [UInt8]] = [:]
            for _ in 0..<count {
                guard let number: UInt32 = self.read(), let stated: UInt32 = self.read(),
                    let bitfieldLength: UInt32 = self.read()
                else { return nil }
                let index = Int64(number)
                guard index < pieceCount, Int64(stated) == min(piece, length - index * piece),
                    Int64(bitfieldLength) == ((Int64(stated) - 1) / Aria2ControlFile.blockLength) / 8 + 1,
                    let blocks = self.read(count: Int(bitfieldLength)),
                    begun.updateValue(blocks, forKey: index) == nil
                else { return nil }
            }
            return self.bytes.isAtEnd ? begun : nil
        }
    }
}

extension [UInt8] {
    /// Whether a bit is set. The first one is the most significant of the first byte.
    fileprivate func isSet(_ bit: Int64) -> Bool { self[Int(bit / 8)] & (0x80 >> UInt8(bit % 8)) != 0 }
}
