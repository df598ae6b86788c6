import SegmentedDownloadCore

/// The framing of a body in chunks (RFC 9112, section 7.1) as the decoder accepts it, made from what servers send: blanks and
/// extensions behind a chunk's size are left out, lines may end with LF only, and trailers are read as heads are. Before whatever else is malformed a NUL is inserted,
/// so that the decoder refuses it: what was left out before might have made it valid.
///
/// Workaround: swift-nio's decoder refuses blanks and LF alone. No upstream issue yet; see
/// ``HeadText``.
struct ChunkText {
    private enum State {
        case size(Size)
        case data(Int)
        /// Behind the data, before the end of the line.
        case dataEnd
        /// Behind the last chunk, with what has arrived up to the empty line.
        case trailers([UInt8])
        case over
    }

    /// The part of a size line that was read.
    private struct Size {
        var value = 0
        var hasDigits = false
        /// Whether the number has ended, and what follows is left out.
        var hasEnded = false
        var isExtension = false
    }

    /// What to decode: bytes of the input, or others.
    private enum Piece {
        case range(Range<Int>)
        case other([UInt8])
    }

    private static let lineEnd = Piece.other(Array("\r\n".utf8))
    private static let nul = Piece.other([0])

    private var state = State.size(Size())

    /// Whether the body has ended, or is malformed.
    var isOver: Bool { if case .over = self.state { true } else { false } }

    /// Reads the next bytes.
    ///
    /// - Returns: What to decode instead; nil if they are to be decoded as they are.
    mutating func read(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        let before = self
        var position = 0
        var isSame = true
        self.read(bytes) { piece in
            switch piece {
            case .range(let range):
                isSame = isSame && range.lowerBound == position
                position = range.upperBound
            case .other(let other):
                isSame = isSame && bytes[min(position, bytes.count)...].starts(with: other)
                position += other.count
            }
        }
        guard !isSame || position != bytes.count else { return nil }
        var copy: [UInt8] = []
        self = before
        self.read(bytes) { piece in
            switch piece {
            case .range(let range): copy += bytes[range]
            case .other(let other): copy += other
            }
        }
        return copy
    }

    private mutating func read(_ bytes: UnsafeRawBufferPointer, _ emit: (Piece) -> Void) {
        var index = 0
        while index < bytes.count {
            if case .data(let count) = self.state {
                let length = min(count, bytes.count - index)
                emit(.range(index..<index + length))
                index += length
                self.state = length < count ? .data(count - length) : .dataEnd
                continue
            }
            guard self.take(bytes[index], at: index, emit) else {
                self.state = .over
                emit(Self.nul)
                return emit(.range(index..<bytes.count))
            }
            index += 1
            if self.isOver { return index < bytes.count ? emit(.range(index..<bytes.count)) : () }
        }
    }

    /// Reads a byte of the framing.
    ///
    /// - Returns: Whether it may occur there.
    private mutating func take(_ byte: UInt8, at index: Int, _ emit: (Piece) -> Void) -> Bool {
        let isLineEnd = byte == UInt8(ascii: "\n")
        switch self.state {
        case .size(var size):
            if isLineEnd {
                guard size.hasDigits else { return false }
                emit(Self.lineEnd)
                self.state = size.value > 0 ? .data(size.value) : .trailers([])
                return true
            }
            if !size.hasEnded, let digit = byte.hexDigitValue {
                // More would be more bytes than there are.
                guard size.value < 1 << 56 else { return false }
                emit(.range(index..<index + 1))
                size.value = size.value << 4 | Int(digit)
                size.hasDigits = true
            } else {
                // A second number would make the size uncertain.
                let mayFollow = byte.isFieldWhitespace || byte == UInt8(ascii: ";") || byte == UInt8(ascii: "\r")
                guard size.hasDigits, size.isExtension || mayFollow else { return false }
                size.hasEnded = true
                size.isExtension = size.isExtension || byte == UInt8(ascii: ";")
            }
            self.state = .size(size)
        case .dataEnd:
            guard isLineEnd else { return byte == UInt8(ascii: "\r") }
            emit(Self.lineEnd)
            self.state = .size(Size())
        case .trailers(var held):
            let isLineEmpty = held.last.map { $0 == UInt8(ascii: "\n") } ?? true
            if byte == UInt8(ascii: "\r"), isLineEmpty { break }
            guard held.count < HeadScanner.lengthMax else { return false }
            held.append(byte)
            self.state = .trailers(held)
            if isLineEnd, isLineEmpty {
                guard let trailers = HeadText.trailers(held) else { return false }
                emit(.other(trailers))
                self.state = .over
            }
        case .data, .over: break
        }
        return true
    }
}
