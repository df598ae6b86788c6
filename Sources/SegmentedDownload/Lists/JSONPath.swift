/// A path to values in a JSON document, such as `.list[]` or `.a."b c"[3].files[]`.
///
/// The syntax is a subset of jq's: keys, quoted if they are not plain words, one element, or every element.
package struct JSONPath: Hashable, Sendable {
    package enum Step: Hashable, Sendable {
        case key(String)
        case index(Int)
        case each
    }

    package let steps: [Step]

    /// Parses a path; `nil` if the text is malformed.
    package init?(_ text: String) {
        var steps: [Step] = []
        var rest = text.unicodeScalars[...]
        // `.` alone is the whole document; `.[]` equals `[]`.
        if text == "." { rest.removeFirst() }
        if rest.starts(with: ".[".unicodeScalars) { rest = rest.dropFirst() }
        while let first = rest.popFirst() {
            let step: Step? =
                switch first {
                case ".": Self.key(&rest).map { .key($0) }
                case "[": Self.subscript(&rest)
                default: nil
                }
            guard let step, steps.count < JSONValue.depthMax else { return nil }
            steps.append(step)
        }
        self.steps = steps
    }

    private static func key(_ rest: inout Substring.UnicodeScalarView) -> String? {
        guard rest.first == "\"" else {
            let word = rest.prefix { $0 != "." && $0 != "[" && $0 != "]" && $0 != "\"" }
            rest = rest[word.endIndex...]
            return word.isEmpty ? nil : String(Substring(word))
        }
        rest.removeFirst()
        var key = String.UnicodeScalarView()
        while let scalar = rest.popFirst() {
            if scalar == "\"" { return String(key) }
            // A backslash escapes the next character.
            guard let taken = scalar == "\\" ? rest.popFirst() : scalar else { return nil }
            key.append(taken)
        }
        return nil
    }

    private static func `subscript`(_ rest: inout Substring.UnicodeScalarView) -> Step? {
        let inner = rest.prefix { $0 != "]" }
        guard inner.endIndex < rest.endIndex else { return nil }
        rest = rest[inner.endIndex...].dropFirst()
        if inner.isEmpty { return .each }
        guard inner.allSatisfy({ ("0"..."9").contains($0) }), let index = Int(String(Substring(inner))) else {
            return nil
        }
        return .index(index)
    }

    /// The values that the path leads to, in order, each with its own path.
    func values(in document: JSONValue) throws(ListProblem) -> [(place: String, value: JSONValue)] {
        var found: [(place: String, value: JSONValue)] = [("", document)]
        for step in self.steps {
            var next: [(place: String, value: JSONValue)] = []
            for (place, value) in found { next += try Self.follow(step, from: value, at: place) }
            found = next
        }
        return found
    }

    private static func follow(
        _ step: Step, from value: JSONValue, at place: String
    ) throws(ListProblem) -> [(place: String, value: JSONValue)] {
        func problem(_ message: String) -> ListProblem { ListProblem(.element(place), message) }
        switch (step, value) {
        case (.key(let key), .object(let object)):
            let target = "\(place).\(key.quotedIfNeeded)"
            guard let member = object[key] else { throw ListProblem(.element(target), "there is no such value") }
            return [(target, member)]
        case (.index(let index), .array(let array)):
            guard index < array.count else {
                throw problem("it has \(array.count) elements, counted from [0]: there is no [\(index)]")
            }
            return [("\(place)[\(index)]", array[index])]
        case (.each, .array(let array)):
            return array.enumerated().map { ("\(place)[\($0)]", $1) }
        case (.key(let key), .string), (.key(let key), .array), (.key(let key), .other):
            throw problem("it is not an object and has no .\(key.quotedIfNeeded)")
        case (.index, .string), (.index, .object), (.index, .other), (.each, .string), (.each, .object),
            (.each, .other):
            throw problem("it is not an array and has no elements")
        }
    }
}

extension String {
    /// The key as it is written in a path.
    fileprivate var quotedIfNeeded: String {
        let isPlain = !self.isEmpty && self.unicodeScalars.allSatisfy { !".[]\"\\ ".unicodeScalars.contains($0) }
        guard !isPlain else { return self }
        let escaped = self.unicodeScalars.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" }.joined()
        return "\"\(escaped)\""
    }
}
