/// A message between apt and an acquire method: a status line, fields, and an empty line.
///
/// See `method.dbk` of apt.
struct AptMessage {
    /// The number and text of the first line, such as `600 URI Acquire`.
    let status: String
    private(set) var fields: [(name: String, value: String)] = []

    /// 64 KiB: the configuration that apt sends has some kilobytes.
    private static let linesMax = 1 << 16

    init(_ status: String, _ fields: [(String, String?)] = []) {
        self.status = status
        // A line end in a value would begin another field.
        self.fields = fields.compactMap { name, value in
            value.map { (name, String($0.map { $0.isNewline ? " " : $0 })) }
        }
    }

    /// Reads the next message; nil at the end of the input.
    init?(nextFrom nextLine: () -> String?) {
        var lines: [String] = []
        while let line = nextLine(), lines.count < Self.linesMax {
            guard line.isEmpty else {
                lines.append(line)
                continue
            }
            if !lines.isEmpty { break }
        }
        guard let first = lines.first else { return nil }
        self.status = first
        self.fields = lines.dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return (String(line[..<colon]), String(line[line.index(after: colon)...].drop { $0 == " " }))
        }
    }

    var number: Int? { self.status.split(separator: " ").first.flatMap { Int($0) } }

    subscript(name: String) -> String? { self.fields.first { $0.name.lowercased() == name.lowercased() }?.value }

    var text: String {
        ([self.status] + self.fields.map { "\($0.name): \($0.value)" }).joined(separator: "\n") + "\n\n"
    }
}
