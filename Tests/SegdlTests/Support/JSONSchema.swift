import Foundation

/// The schema of the command's output, and the subset of JSON Schema (draft 2020-12) that it uses.
///
/// An unsupported keyword is a violation, because its constraint would not be checked.
struct JSONSchema {
    private let root: JSON

    init(_ root: JSON) {
        self.root = root
    }

    /// The schema in the documentation.
    static func published() throws -> JSONSchema {
        JSONSchema(
            try JSON(
                try String(contentsOf: Self.directory.appending(path: "Resources/events.schema.json"), encoding: .utf8))
        )
    }

    /// The library's documentation.
    static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appending(components: "..", "..", "..", "Sources", "SegmentedDownload", "SegmentedDownload.docc")
        .standardizedFileURL

    /// The definitions by name.
    var definitions: [String: JSON] { self.root["$defs"]?.members ?? [:] }

    /// Why a value does not match a definition, or any allowed object; empty if it matches.
    func violations(of value: JSON, as definition: String? = nil) -> [String] {
        guard let definition else { return self.check(value, self.root, "") }
        return self.check(value, .object(["$ref": .string("#/$defs/\(definition)")]), "")
    }

    private func check(_ value: JSON, _ schema: JSON, _ place: String) -> [String] {
        guard let keywords = schema.members else { return ["\(place): \(schema) is not a schema"] }
        return keywords.flatMap { keyword, operand in self.check(value, keyword, operand, keywords, place) }
    }

    private func check(
        _ value: JSON, _ keyword: String, _ operand: JSON, _ keywords: [String: JSON], _ place: String
    ) -> [String] {
        func no(_ why: String) -> [String] { ["\(place.isEmpty ? "the object" : place): \(why)"] }
        switch keyword {
        case "$schema", "$id", "$defs", "title", "description": return []
        case "$ref":
            guard let name = operand.text, name.hasPrefix("#/$defs/"),
                let target = self.definitions[String(name.dropFirst("#/$defs/".count))]
            else { return no("\(operand) leads nowhere") }
            return self.check(value, target, place)
        case "type": return Self.isOf(operand.text, value) ? [] : no("\(value) is not of type \(operand.text ?? "?")")
        case "const": return value == operand ? [] : no("\(value) is not \(operand)")
        case "enum": return operand.elements?.contains(value) == true ? [] : no("\(value) is not an allowed value")
        case "minimum":
            guard let number = value.double, let least = operand.double else { return [] }
            return number >= least ? [] : no("\(number) is below \(least)")
        case "pattern":
            guard let text = value.text, let pattern = operand.text else { return [] }
            guard let regex = try? Regex(pattern) else { return no("\(pattern) is not a pattern") }
            return text.contains(regex) ? [] : no("\(text) does not match \(pattern)")
        case "required":
            guard let members = value.members, let names = operand.elements else { return [] }
            return names.compactMap(\.text).filter { members[$0] == nil }.flatMap { no("\($0) is missing") }
        case "properties":
            guard let members = value.members, let known = operand.members else { return [] }
            return members.flatMap { name, member in
                known[name].map { self.check(member, $0, "\(place)/\(name)") } ?? []
            }
        case "additionalProperties":
            guard let members = value.members else { return [] }
            let others = members.filter { keywords["properties"]?[$0.key] == nil }
            if operand == .bool(false) { return others.keys.flatMap { no("\($0) is unknown") } }
            return others.flatMap { self.check($0.value, operand, "\(place)/\($0.key)") }
        case "items":
            guard let elements = value.elements else { return [] }
            return elements.enumerated().flatMap { self.check($0.element, operand, "\(place)/\($0.offset)") }
        case "anyOf", "oneOf":
            let answers = (operand.elements ?? []).map { self.check(value, $0, place) }
            let count = answers.count { $0.isEmpty }
            guard count == 0 else { return count == 1 || keyword == "anyOf" ? [] : no("fits \(count) of oneOf") }
            // Reports the alternative with the fewest violations.
            return answers.min { $0.count < $1.count } ?? no("nothing is allowed")
        default: return no("the keyword \(keyword) is not understood")
        }
    }

    private static func isOf(_ type: String?, _ value: JSON) -> Bool {
        switch (type, value) {
        case ("object", .object), ("array", .array), ("string", .string), ("number", .number), ("boolean", .bool),
            ("null", .null):
            true
        case ("integer", .number(let number)): number == number.rounded()
        default: false
        }
    }
}
