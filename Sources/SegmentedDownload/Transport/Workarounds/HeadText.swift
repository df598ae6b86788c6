import SegmentedDownloadCore

/// A response head as the decoder accepts it, made from what servers send.
///
/// Everything is accepted that leaves no doubt about where the head and the body end: lines that end with LF only, folded lines
/// (RFC 9112, section 5.2), blanks around a field's name, codings that change nothing, equal lengths, protocol names of other
/// versions. Fields whose name is no token, or whose value has control characters, are left out; curl and wget show them, and none
/// of them means anything here. What curl accepts and this does not: a length with a sign, and a line without a colon.
///
/// Workaround: swift-nio's decoder refuses all of this, and takes two CRs in the status line for the end of the head. No
/// upstream issue yet; llhttp has lenient modes, which swift-nio would have to offer.
enum HeadText {
    /// The result for a complete head.
    enum Result {
        /// The bytes to decode, and whether a body in chunks follows them.
        case head([UInt8], isChunked: Bool)
        /// The rest of a sentence that begins with the server's name.
        case refused(String)
    }

    private struct Field {
        var name: ArraySlice<UInt8>
        var value: ArraySlice<UInt8>

        init?(_ line: ArraySlice<UInt8>) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
            self.name = line[..<colon].trimmingFieldWhitespace
            self.value = line[(colon + 1)...].trimmingFieldWhitespace
        }

        func isNamed(_ other: String) -> Bool {
            self.name.count == other.utf8.count && zip(self.name, other.utf8).allSatisfy { $0 | 0x20 == $1 }
        }

        /// Whether it says what the body is or where it ends. If it is malformed, nothing is certain.
        var isEssential: Bool {
            let essential = ["transfer-encoding", "location", "etag", "last-modified", "repr-digest", "digest"]
            return self.name.starts(with: "content-".utf8) { $0 | 0x20 == $1 }
                || essential.contains { self.isNamed($0) }
        }

        /// Whether its name has control characters, or is that of an essential field but for what no name has.
        var mayBeEssential: Bool {
            guard self.name.allSatisfy(\.isText) else { return true }
            var plain = self
            plain.name = self.name.filter(\.isTokenCharacter)[...]
            return plain.isEssential
        }

        /// The members of its list, in lower case.
        var members: [[UInt8]] {
            self.value.split(separator: UInt8(ascii: ",")).map { $0.trimmingFieldWhitespace.map(\.asciiLowercased) }
                .filter {
                    !$0.isEmpty
                }
        }
    }

    private struct Malformed: Error {
        let reason: String
    }

    /// Reads a head, which ends with an empty line.
    static func read(_ head: [UInt8]) -> Result {
        // Empty lines before the status line are skipped.
        var lines = Self.lines(of: head).drop { $0.isEmpty }
        guard let status = lines.popFirst() else { return .head(head, isChunked: false) }
        guard !status.contains(UInt8(ascii: "\r")) else { return .refused("sent a status line with a CR within it") }
        do throws(Malformed) {
            var fields = try Self.fields(of: lines)
            let isChunked = Self.mergeFraming(of: &fields)
            return .head(Self.statusLine(status) + Self.text(of: fields), isChunked: isChunked)
        } catch {
            return .refused(error.reason)
        }
    }

    /// Reads the trailers of a body in chunks, which end with an empty line. Those that would say where a body ends are left out
    /// (RFC 9110, section 6.5.1).
    ///
    /// - Returns: The trailers as the decoder accepts them; nil if they are malformed.
    static func trailers(_ text: [UInt8]) -> [UInt8]? {
        guard var fields = try? Self.fields(of: Self.lines(of: text)) else { return nil }
        fields.removeAll { $0.isNamed("content-length") || $0.isNamed("transfer-encoding") }
        return Self.text(of: fields)
    }

    /// The lines before the empty one at the end.
    private static func lines(of text: [UInt8]) -> ArraySlice<ArraySlice<UInt8>> {
        text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast(2).map { line in
            line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        }[...]
    }

    private static func fields(of lines: ArraySlice<ArraySlice<UInt8>>) throws(Malformed) -> [Field] {
        var fields: [Field] = []
        for line in lines {
            if line.first?.isFieldWhitespace == true {
                // Before the first field it belongs to nothing (RFC 9112, section 2.2).
                guard var folded = fields.popLast() else { continue }
                folded.value =
                    (Array(folded.value) + [UInt8(ascii: " ")] + line.trimmingFieldWhitespace)[...]
                    .trimmingFieldWhitespace
                fields.append(folded)
                continue
            }
            guard let field = Field(line) else { throw Malformed(reason: "sent a head with a line that is no field") }
            fields.append(field)
        }
        if let field = fields.first(where: { $0.isEssential && !$0.value.allSatisfy(\.isText) }) {
            throw Malformed(
                reason: "sent a \(String(decoding: field.name, as: UTF8.self)) with a control character")
        }
        // Without the field that it looks like, the body would have another end.
        if fields.contains(where: { !$0.name.allSatisfy(\.isTokenCharacter) && $0.mayBeEssential }) {
            throw Malformed(reason: "sent a head with a malformed name of a field")
        }
        fields.removeAll {
            !$0.name.allSatisfy(\.isTokenCharacter) || $0.name.isEmpty || !$0.value.allSatisfy(\.isText)
        }
        return fields
    }

    private static func text(of fields: [Field]) -> [UInt8] {
        fields.flatMap { Self.line(Array($0.name) + Array(": ".utf8) + $0.value) } + Self.line([])
    }

    /// Merges equal lengths, and transfer codings that change nothing. Others stay as they are.
    ///
    /// - Returns: Whether the body is in chunks.
    private static func mergeFraming(of fields: inout [Field]) -> Bool {
        let lengths = fields.filter { $0.isNamed("content-length") }
        if lengths.count > 1 || lengths.first?.value.contains(UInt8(ascii: ",")) == true,
            let one = lengths.first?.members.first, lengths.allSatisfy({ $0.members.allSatisfy { $0 == one } })
        {
            fields.removeAll { $0.isNamed("content-length") }
            if let field = Field((Array("Content-Length: ".utf8) + one)[...]) { fields.append(field) }
        }
        let codings = fields.filter { $0.isNamed("transfer-encoding") }
        guard !codings.isEmpty else { return false }
        let members = codings.flatMap(\.members).filter { !$0.elementsEqual("identity".utf8) }
        guard members.allSatisfy({ $0.elementsEqual("chunked".utf8) }) else { return false }
        fields.removeAll { $0.isNamed("transfer-encoding") }
        guard !members.isEmpty, let field = Field(Array("Transfer-Encoding: chunked".utf8)[...]) else { return false }
        fields.append(field)
        return true
    }

    /// A status line with one blank between its parts. That of HTTP/2 or 3 is taken for one of HTTP/1.1, which servers send that put
    /// a version into a configured text, and so is an interim one of HTTP/1.0, which would end the connection.
    private static func statusLine(_ line: ArraySlice<UInt8>) -> [UInt8] {
        let name = line.prefix { !$0.isFieldWhitespace }
        let rest = line[name.endIndex...].drop(while: \.isFieldWhitespace)
        let isLater = ["http/2", "http/2.0", "http/3", "http/3.0"].contains {
            name.map(\.asciiLowercased).elementsEqual($0.utf8)
        }
        let isInterim = rest.first == UInt8(ascii: "1")
        let version = isLater || isInterim ? Array("HTTP/1.1".utf8) : Array("HTTP".utf8) + name.dropFirst(4)
        return Self.line(version + [UInt8(ascii: " ")] + rest.map { $0.isText ? $0 : UInt8(ascii: " ") })
    }

    private static func line(_ text: [UInt8]) -> [UInt8] {
        (text.contains { $0 >= 0x80 } ? ObsText.encoded(text) ?? text : text) + Array("\r\n".utf8)
    }
}

extension UInt8 {
    /// Whether it may occur in a value (RFC 9110, section 5.5).
    fileprivate var isText: Bool { self >= 0x20 && self != 0x7F || self == UInt8(ascii: "\t") }
}
