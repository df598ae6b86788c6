import HTTPTypes

/// Carries field values that are not UTF-8 through NIO, which decodes every field value as UTF-8.
///
/// A byte from 0x80 on travels as the private-use character U+F780…U+F7FF. NIO would replace it by U+FFFD, and two different entity
/// tags would look the same. A line that is UTF-8 stays as it is, unless it has one of these characters itself: so different bytes
/// are different texts, and a tag goes back to the server as the bytes that came (RFC 9110 §5.5, §8.8.3).
enum ObsText {
    /// The character of byte 0x00, were there one.
    private static let base: UInt32 = 0xF700

    /// A piece of a head's line as it is handed to the decoder; absent where that is as it came.
    static func encoded(_ line: some Collection<UInt8>) -> [UInt8]? {
        if let text = String(validating: line, as: UTF8.self), !text.unicodeScalars.contains(where: Self.isByte) {
            return nil
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(line.count * 3)
        for byte in line {
            if byte < 0x80 {
                bytes.append(byte)
            } else {
                // U+F780…U+F7FF in UTF-8.
                bytes += [0xEF, 0x9C | byte >> 6, 0x80 | byte & 0x3F]
            }
        }
        return bytes
    }

    /// A request's head as it is sent; absent where that is as the encoder wrote it.
    static func decoded(_ head: some Collection<UInt8>) -> [UInt8]? {
        // The first byte of each of these characters.
        guard head.contains(0xEF) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(head.count)
        for scalar in String(decoding: head, as: UTF8.self).unicodeScalars {
            if let byte = Self.byte(scalar) { bytes.append(byte) } else { bytes += String(scalar).utf8 }
        }
        return bytes
    }

    /// What a field's value means.
    ///
    /// A validator is compared and sent back, so it stays exact. In a reference each byte is an octet of its own, percent-encoded
    /// (RFC 3986 §2.1). All else is text for people, in Latin-1.
    static func meaning(_ value: String, of name: HTTPField.Name) -> String {
        guard name != .eTag, name != .lastModified, value.unicodeScalars.contains(where: Self.isByte) else {
            return value
        }
        var text = String.UnicodeScalarView()
        for scalar in value.unicodeScalars {
            guard let byte = Self.byte(scalar) else {
                text.append(scalar)
                continue
            }
            if name == .location {
                text.append(contentsOf: "%\(String(byte, radix: 16, uppercase: true))".unicodeScalars)
            } else {
                text.append(Unicode.Scalar(byte))
            }
        }
        return String(text)
    }

    private static func isByte(_ scalar: Unicode.Scalar) -> Bool {
        (Self.base + 0x80...Self.base + 0xFF).contains(scalar.value)
    }

    private static func byte(_ scalar: Unicode.Scalar) -> UInt8? {
        Self.isByte(scalar) ? UInt8(truncatingIfNeeded: scalar.value) : nil
    }
}
