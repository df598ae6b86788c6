import HTTPTypes

/// Encodes field values that are not UTF-8 as text.
///
/// A byte from 0x80 on becomes the private-use character U+F780…U+F7FF. A line that is valid UTF-8 is unchanged unless
/// it contains one of these characters. So different bytes have different encodings, and a tag is sent back as the
/// bytes that were received (RFC 9110, sections 5.5 and 8.8.3).
///
/// Workaround: swift-nio decodes every field value as UTF-8 and replaces other bytes by U+FFFD, so that two different
/// entity tags would compare equal. No upstream issue yet; `HTTPHeaders` would have to keep the bytes of a value.
enum ObsText {
    /// The code point that byte 0x00 would be mapped to.
    private static let base: UInt32 = 0xF700

    /// The encoded form of part of a head's line; `nil` if it is unchanged.
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

    /// The bytes of an encoded request head; `nil` if they are unchanged.
    static func decoded(_ head: some Collection<UInt8>) -> [UInt8]? {
        // 0xEF is the first byte of each of these characters in UTF-8.
        guard head.contains(0xEF) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(head.count)
        for scalar in String(decoding: head, as: UTF8.self).unicodeScalars {
            if let byte = Self.byte(scalar) { bytes.append(byte) } else { bytes += String(scalar).utf8 }
        }
        return bytes
    }

    /// Decodes a field's value for its use.
    ///
    /// A validator or a cookie is compared or sent back, so it stays encoded. In `Location` each such byte is percent-encoded (RFC
    /// 3986, section 2.1). Any other field is decoded as Latin-1 text.
    static func meaning(_ value: String, of name: HTTPField.Name) -> String {
        guard ![.eTag, .lastModified, .setCookie].contains(name), value.unicodeScalars.contains(where: Self.isByte)
        else {
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
