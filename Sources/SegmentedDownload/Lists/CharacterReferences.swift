/// Decodes the character references of HTML that occur in URLs.
///
/// Numbers, and the five names that servers escape with. An ampersand that begins no such reference is itself.
enum CharacterReferences {
    private static let names: [Substring: Unicode.Scalar] = [
        "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'",
    ]
    /// 10: `#x10FFFF`, with zeros before it.
    private static let lengthMax = 10

    static func decode(_ text: String) -> String {
        var decoded = String.UnicodeScalarView()
        // Blanks around a URL, and line ends and tabs in it, do not belong to it.
        let separators: [Unicode.Scalar] = ["\t", "\n", "\r"]
        var rest = text.unicodeScalars.filter { !separators.contains($0) }[...]
        while rest.first == " " { rest.removeFirst() }
        while rest.last == " " { rest.removeLast() }
        while let scalar = rest.popFirst() {
            let window = rest.prefix(Self.lengthMax)
            guard scalar == "&", let end = window.firstIndex(of: ";"),
                let replacement = Self.scalar(Substring(window[..<end]))
            else {
                decoded.append(scalar)
                continue
            }
            decoded.append(replacement)
            rest = rest[end...].dropFirst()
        }
        return String(decoded)
    }

    private static func scalar(_ reference: Substring) -> Unicode.Scalar? {
        guard reference.hasPrefix("#") else { return Self.names[reference] }
        let digits = reference.dropFirst()
        let isHexadecimal = digits.hasPrefix("x") || digits.hasPrefix("X")
        let number = UInt32(isHexadecimal ? digits.dropFirst() : digits, radix: isHexadecimal ? 16 : 10)
        return number.flatMap { $0 > 0 ? Unicode.Scalar($0) : nil }
    }
}
