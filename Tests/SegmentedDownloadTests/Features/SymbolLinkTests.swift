import Foundation
import Testing

/// The links between ``…`` in articles and comments, such as ``DownloadGroup/add(_:)``, name declarations.
@Suite("Links to symbols")
struct SymbolLinkTests {
    private static let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appending(components: "..", "..", "..", "Sources").standardizedFileURL
    /// 20: no parameter list has more lines.
    private static let linesMax = 20
    private static let modules = ["SegmentedDownload", "SegmentedDownloadCore", "SegmentedDownloadService"]

    /// The texts of all files of the library with an extension, by path.
    private static func files(_ ext: String) throws -> [String: String] {
        var files: [String: String] = [:]
        for module in Self.modules {
            let directory = Self.sources.appending(path: module)
            for name in try FileManager.default.subpathsOfDirectory(atPath: directory.path)
            where name.hasSuffix(ext) {
                files["\(module)/\(name)"] = try String(contentsOf: directory.appending(path: name), encoding: .utf8)
            }
        }
        return files
    }

    /// The symbols that a file declares, as links name them: `Type/member(label:)`. It must be formatted, since the
    /// indentation tells where a type ends.
    private static func declarations(in text: String) -> Set<String> {
        var symbols: Set<String> = []
        var types: [(name: String, indentation: Int)] = []
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for (number, line) in lines.enumerated() {
            let indentation = line.prefix { $0 == " " }.count
            let code = line.dropFirst(indentation)
            guard !code.isEmpty, !code.hasPrefix("//"), !code.hasPrefix("#") else { continue }
            types.removeAll { $0.indentation >= indentation && !code.hasPrefix("{") }
            // Declarations inside of functions are deeper than one step below their type, and are passed over.
            guard types.last.map({ $0.indentation + 4 == indentation }) ?? true else { continue }
            if let type = code.firstMatch(
                of: /^(?:[a-z]+ |@[A-Za-z]+ )*(?:struct|class|enum|protocol|actor|extension) ([A-Za-z.]+)/)
            {
                let name = type.1.replacing(".", with: "/")
                types.append(((types.last.map { $0.name + "/" } ?? "") + name, indentation))
                symbols.insert(types[types.count - 1].name)
                continue
            }
            let scope = types.last.map { $0.name + "/" } ?? ""
            if let match = code.firstMatch(
                of: /^(?:[a-z]+(?:\(set\))? |@[A-Za-z]+ )*(?:var|let|func|typealias) `?([A-Za-z0-9]+)/)
            {
                let isFunction = match.0.contains("func ")
                let labels =
                    isFunction ? Self.labels(lines[number...].prefix(Self.linesMax).joined(separator: " ")) : ""
                symbols.insert(scope + match.1 + labels)
            } else if code.firstMatch(of: /^(?:[a-z]+ )*init\??[<(]/) != nil {
                symbols.insert(
                    scope + "init" + Self.labels(lines[number...].prefix(Self.linesMax).joined(separator: " ")))
            } else if code.hasPrefix("case "), !code.hasPrefix("case .") {
                for element in Self.parts(of: code.dropFirst("case ".count).prefix { $0 != "/" && $0 != "=" }) {
                    let name = element.filter { $0 != "`" }.prefix { $0.isLetter || $0.isNumber }
                    let values = element.drop { $0 != "(" }
                    symbols.insert(scope + name + (values.isEmpty ? "" : Self.labels(values)))
                }
            }
        }
        return symbols
    }

    /// The argument labels of a parameter list, such as `(_:named:)`, which begins after generic parameters.
    private static func labels(_ text: some StringProtocol) -> String {
        guard let open = text.firstIndex(of: "(") else { return "" }
        var depth = 0
        let inner = text[open...].dropFirst().prefix { character in
            if "([{".contains(character) { depth += 1 }
            if ")]}".contains(character) { depth -= 1 }
            return depth >= 0
        }
        let names = Self.parts(of: inner).map { parameter in
            // An associated value without a label has a type only.
            guard let colon = parameter.firstIndex(of: ":") else { return "_:" }
            return parameter[..<colon].split(separator: " ").first { !$0.hasPrefix("@") }.map { "\($0):" } ?? "_:"
        }
        return "(" + names.joined() + ")"
    }

    /// The parts of a text between commas that are in no brackets, trimmed.
    private static func parts(of text: some StringProtocol) -> [String] {
        var parts = [""]
        var depth = 0
        var before: Character = " "
        for character in text {
            // Neither the arrow of a function's type nor a shift is a bracket.
            if "([{".contains(character) || character == "<" && before.isLetter { depth += 1 }
            if ")]}".contains(character) || character == ">" && !"-> ".contains(before) { depth -= 1 }
            before = character
            if character == ",", depth == 0 { parts.append("") } else { parts[parts.count - 1].append(character) }
        }
        return parts.map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    @Test("Every link to a member names a declaration, in articles and in comments")
    func links() throws {
        let code = try Self.files(".swift")
        let symbols = code.values.reduce(into: Set<String>()) { $0.formUnion(Self.declarations(in: $1)) }
        var count = 0
        for (path, text) in code.merging(try Self.files(".md"), uniquingKeysWith: { one, _ in one }) {
            for link in text.matches(of: /``([A-Z][A-Za-z]*\/[^`]+)``/) {
                count += 1
                // A link in a comment may begin in the type that it is in.
                let isKnown =
                    symbols.contains(String(link.1))
                    || path.hasSuffix(".swift") && symbols.contains { $0.hasSuffix("/" + link.1) }
                #expect(isKnown, "\(path): \(link.0)")
            }
        }
        #expect(count > 150)
    }

    @Test("Declarations are found with the types that they are in and the labels of their arguments")
    func found() {
        let text = """
            public struct One<Value: Sendable>: Sendable {
                public let plain: Int
                public private(set) var other = 1

                public enum Two: Hashable {
                    case three, four(Int, label: [String: Int])
                    case `five`
                }

                public init?(_ text: String) {
                    let local = text
                }

                func six<A, B>(
                    _ a: A, with b: (B, Int) -> Void = { _, _ in }, at c: [Int: Set<Int>] = [:], by d: Int = 1 << 2
                ) async -> B {
                    for case .four in [] {}
                }
            }

            extension One.Two {
                static func seven() {}
            }

            @discardableResult
            public func eight(_ a: Int) {}
            """
        let expected: Set = [
            "One", "One/plain", "One/other", "One/Two", "One/Two/three", "One/Two/four(_:label:)", "One/Two/five",
            "One/init(_:)", "One/six(_:with:at:by:)", "One/Two/seven()", "eight(_:)",
        ]
        #expect(Self.declarations(in: text) == expected)
    }
}
