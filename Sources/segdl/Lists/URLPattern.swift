import SegmentedDownload

/// A pattern for several URLs, as in curl: `file[001-100].iso`, `[a-f]`, `[0-100:25]`, `{one,two}`.
///
/// A backslash before one of these characters makes it literal.
struct URLPattern {
    /// One part of a pattern, with its values in order.
    private enum Part: Hashable {
        case text(String)
        case words([String])
        case numbers(first: Int, step: Int, count: Int, width: Int)
        case letters(first: UInt8, step: Int, count: Int)

        var count: Int {
            switch self {
            case .text: 1
            case .words(let words): words.count
            case .numbers(_, _, let count, _), .letters(_, _, let count): count
            }
        }

        func value(_ index: Int) -> String {
            switch self {
            case .text(let text): return text
            case .words(let words): return words[index]
            case .numbers(let first, let step, _, let width):
                let digits = "\(first + index * step)"
                return String(repeating: "0", count: max(width - digits.count, 0)) + digits
            case .letters(let first, let step, _):
                return String(UnicodeScalar(first + UInt8(index * step)))
            }
        }
    }

    /// One of the URLs, with the value of each part that varies.
    struct Instance: Hashable {
        var url: String
        var values: [String]

        /// The text with `#1`, `#2` and so on replaced by the values of the first part that varies, the second and so
        /// on.
        func name(_ text: String) -> String {
            var name = ""
            var rest = Substring(text)
            while let mark = rest.firstIndex(of: "#") {
                name += rest[..<mark]
                rest = rest[rest.index(after: mark)...]
                let digits = rest.prefix { $0.isASCII && $0.isNumber }
                if let number = Int(digits), self.values.indices.contains(number - 1) {
                    name += self.values[number - 1]
                    rest = rest.dropFirst(digits.count)
                } else {
                    name += "#"
                }
            }
            return name + rest
        }
    }

    /// 100 000: a million is probably a typing error.
    private static let countMax = 100_000

    private var parts: [Part] = []
    let count: Int

    /// - Throws: ``DownloadError`` with code `usage` if a part is malformed or there are too many URLs.
    init(_ text: String) throws(DownloadError) {
        var rest = Substring(text)
        var literal = ""
        while let character = rest.popFirst() {
            switch character {
            case "\\" where rest.first.map { "[]{}\\,".contains($0) } == true: literal.append(rest.removeFirst())
            case "[" where Self.isAddress(rest): literal += "["
            case "[", "{":
                let closing: Character = character == "[" ? "]" : "}"
                guard let end = rest.firstIndex(of: closing) else {
                    throw Self.problem("\(character) is not closed; use --no-glob if it is part of the URL")
                }
                if !literal.isEmpty { self.parts.append(.text(literal)) }
                literal = ""
                let content = rest[..<end]
                self.parts.append(character == "[" ? try Self.range(content) : try Self.words(content))
                rest = rest[rest.index(after: end)...]
            case "}": throw Self.problem("} has no opening {; use --no-glob if it is part of the URL")
            default: literal.append(character)
            }
        }
        if !literal.isEmpty { self.parts.append(.text(literal)) }
        var count = 1
        for part in self.parts {
            let (product, isTooMany) = count.multipliedReportingOverflow(by: part.count)
            count = product
            guard !isTooMany, count <= Self.countMax else {
                throw Self.problem("it expands to more than \(Self.countMax) URLs")
            }
        }
        self.count = count
    }

    /// All URLs. The last part varies fastest.
    var instances: [Instance] {
        (0..<self.count).map { number in
            var instance = Instance(url: "", values: [])
            var rest = number
            for part in self.parts.reversed() {
                let value = part.value(rest % part.count)
                rest /= part.count
                instance.url = value + instance.url
                if case .text = part { continue }
                instance.values.insert(value, at: 0)
            }
            return instance
        }
    }

    /// The URL with literal brackets and braces: percent-encoded after the host, where RFC 3986 does not allow them.
    static func literal(_ url: String) -> String {
        let host = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        let path = url[host...].firstIndex { "/?#".contains($0) } ?? url.endIndex
        return String(url[..<path]) + url[path...].map { Self.codes[$0] ?? String($0) }.joined()
    }

    private static let codes: [Character: String] = ["[": "%5B", "]": "%5D", "{": "%7B", "}": "%7D"]

    // MARK: Reading

    /// Whether a bracket begins an IPv6 address.
    private static func isAddress(_ rest: Substring) -> Bool {
        guard let end = rest.firstIndex(of: "]") else { return false }
        let content = rest[..<end]
        return content.contains(":") && !content.contains("-")
            && content.allSatisfy { $0.isHexDigit || $0 == ":" || $0 == "." }
    }

    private static func words(_ content: Substring) throws(DownloadError) -> Part {
        var words = [""]
        var rest = content
        while let character = rest.popFirst() {
            if character == "\\", let next = rest.popFirst() {
                words[words.count - 1].append(next)
            } else if character == "," {
                words.append("")
            } else {
                words[words.count - 1].append(character)
            }
        }
        guard words != [""] else { throw Self.problem("{} is empty") }
        return .words(words)
    }

    private static func range(_ content: Substring) throws(DownloadError) -> Part {
        let malformed = Self.problem(
            "brackets need a range such as [1-9], [001-100], [a-z] or [0-100:10]; use --no-glob for a literal URL"
        )
        let halves = content.split(separator: ":", omittingEmptySubsequences: false)
        let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
        guard halves.count <= 2, ends.count == 2, let step = halves.count == 2 ? Self.number(halves[1]) : 1, step > 0
        else { throw malformed }
        if let first = Self.number(ends[0]), let last = Self.number(ends[1]) {
            guard first <= last else { throw malformed }
            let isPadded = ends[0].count > 1 && ends[0].hasPrefix("0")
            return .numbers(
                first: first, step: step, count: (last - first) / step + 1, width: isPadded ? ends[0].count : 0)
        }
        guard let first = Self.letter(ends[0]), let last = Self.letter(ends[1]), first <= last else { throw malformed }
        return .letters(first: first, step: step, count: Int(last - first) / step + 1)
    }

    private static func number(_ text: Substring) -> Int? {
        guard !text.isEmpty, text.count <= 15, text.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        return Int(text)
    }

    private static func letter(_ text: Substring) -> UInt8? {
        guard text.utf8.count == 1, let byte = text.utf8.first, text.first?.isLetter == true else { return nil }
        return byte
    }

    private static func problem(_ what: String) -> DownloadError {
        DownloadError(.usage, "a pattern in a URL is malformed: \(what)")
    }
}
