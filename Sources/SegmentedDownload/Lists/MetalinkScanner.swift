import CExpat

/// Parses a document with expat and passes its elements to a ``MetalinkReader``.
///
/// XML attacks are excluded: parsing stops at a document type, before any entity is declared, so nothing is expanded or
/// fetched. Depth and text length are limited. The document is passed in one piece, because expat rescans a long token
/// for every small piece (CVE-2023-52425).
final class MetalinkScanner {
    /// 64 MiB: the piece digests of some hundred gigabytes. The parsed form takes several times that.
    static let lengthMax = 64 << 20
    /// 32: a metalink has six levels, and extensions add a few.
    static let depthMax = 32
    /// 64 KiB, the maximum line length of a text list.
    static let textLengthMax = 1 << 16

    /// The separator between namespace and local name. Neither contains a line feed.
    private static let separator: CChar = 0x0A

    private let parser: XML_Parser
    private var reader: MetalinkReader
    private var depth = 0
    /// The text of the open element; `nil` if it is not needed.
    private var text: [UInt8]?
    /// The first error. Nothing is read after it.
    private var problem: ListProblem?

    private init(_ parser: XML_Parser, _ reader: MetalinkReader) {
        self.parser = parser
        self.reader = reader
    }

    static func files(in bytes: [UInt8], relativeTo base: ListBase?) throws(ListProblem) -> [Metalink.File] {
        guard bytes.count <= Self.lengthMax else {
            throw ListProblem(.element(""), "it has \(bytes.count) bytes; metalinks are read up to \(Self.lengthMax)")
        }
        guard let parser = XML_ParserCreateNS(nil, Self.separator) else {
            throw ListProblem(.element(""), "there is not enough memory to read it", code: .internal)
        }
        defer { XML_ParserFree(parser) }
        let scanner = MetalinkScanner(parser, MetalinkReader(relativeTo: base))
        return try withExtendedLifetime(scanner) { () throws(ListProblem) in try scanner.files(in: bytes) }
    }

    private func files(in bytes: [UInt8]) throws(ListProblem) -> [Metalink.File] {
        XML_SetUserData(self.parser, Unmanaged.passUnretained(self).toOpaque())
        XML_SetElementHandler(
            self.parser, { MetalinkScanner.at($0)?.began($1, $2) }, { data, _ in MetalinkScanner.at(data)?.ended() })
        XML_SetCharacterDataHandler(self.parser) { MetalinkScanner.at($0)?.take($1, $2) }
        XML_SetStartDoctypeDeclHandler(self.parser) { data, _, _, _, _ in
            MetalinkScanner.at(data)?.stop("there is a DOCTYPE, which no metalink has; this may be a web page")
        }
        let status = bytes.withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { XML_Parse(self.parser, $0.baseAddress, CInt($0.count), 1) }
        }
        if let problem { throw problem }
        guard status == XML_STATUS_OK else {
            let words = XML_ErrorString(XML_GetErrorCode(self.parser)).map { String(cString: $0) } ?? "unknown error"
            throw ListProblem(.line(self.line), "it is not well-formed XML: \(words)")
        }
        return try self.reader.finished()
    }

    private var line: Int { Int(clamping: XML_GetCurrentLineNumber(self.parser)) }

    // MARK: What expat calls

    /// The scanner for a callback; `nil` after an error, because expat may make a few more calls.
    private static func at(_ data: UnsafeMutableRawPointer?) -> MetalinkScanner? {
        guard let data else { return nil }
        let scanner = Unmanaged<MetalinkScanner>.fromOpaque(data).takeUnretainedValue()
        return scanner.problem == nil ? scanner : nil
    }

    private func stop(_ message: String) {
        self.stop(ListProblem(.line(self.line), message))
    }

    private func stop(_ problem: ListProblem) {
        self.problem = problem
        XML_StopParser(self.parser, 0)
    }

    private func began(
        _ name: UnsafePointer<CChar>?, _ attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?
    ) {
        guard let name else { return }
        self.depth += 1
        guard self.depth <= Self.depthMax else {
            return self.stop("its elements are nested more than \(Self.depthMax) levels deep")
        }
        guard self.text == nil else { return self.stop("there is an element where text should be") }
        do throws(ListProblem) {
            let wantsText = try self.reader.began(Self.name(String(cString: name)), line: self.line) {
                Self.value(of: $0, in: attributes)
            }
            if wantsText { self.text = [] }
        } catch {
            self.stop(error)
        }
    }

    private func take(_ characters: UnsafePointer<CChar>?, _ count: CInt) {
        guard self.text != nil, let characters else { return }
        guard let length = self.text?.count, length + Int(count) <= Self.textLengthMax else {
            return self.stop("a text has more than \(Self.textLengthMax) bytes")
        }
        self.text?.append(contentsOf: UnsafeRawBufferPointer(start: characters, count: Int(count)))
    }

    private func ended() {
        self.depth -= 1
        let text = self.text.map { String(decoding: $0, as: UTF8.self) }
        self.text = nil
        do throws(ListProblem) {
            try self.reader.ended(text: text ?? "", line: self.line)
        } catch {
            self.stop(error)
        }
    }

    private static func name(_ qualified: String) -> MetalinkReader.Name {
        let text = qualified.utf8
        guard let end = text.lastIndex(of: UInt8(Self.separator)) else {
            return MetalinkReader.Name(namespace: "", local: qualified)
        }
        return MetalinkReader.Name(
            namespace: String(qualified[..<end]), local: String(qualified[text.index(after: end)...]))
    }

    /// The value of an attribute without a namespace. The array alternates names and values and ends with a null
    /// pointer.
    private static func value(
        of name: String, in attributes: UnsafeMutablePointer<UnsafePointer<CChar>?>?
    ) -> String? {
        guard var place = attributes else { return nil }
        while let key = place[0], let value = place[1] {
            if String(cString: key) == name { return String(cString: value) }
            place += 2
        }
        return nil
    }
}
