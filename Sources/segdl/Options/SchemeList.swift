import ArgumentParser

/// The schemes that URLs may have, in the notation of curl's `--proto`: `=https`, `-http`, `http,https`.
struct SchemeList: Hashable, ExpressibleByArgument {
    /// The supported schemes.
    private static let all: Set<String> = ["http", "https"]

    private(set) var schemes = Self.all

    init() {}

    var defaultValueDescription: String { self.schemes.sorted().joined(separator: ",") }

    init?(argument: String) {
        // As in curl, a name without a sign adds to the schemes that are already allowed.
        for item in argument.lowercased().split(separator: ",") {
            let sign = item.first.flatMap { "=+-".contains($0) ? $0 : nil }
            let name = String(sign == nil ? item : item.dropFirst())
            guard !name.isEmpty, name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) else { return nil }
            // curl's other schemes are accepted and ignored.
            let named = name == "all" ? Self.all : Self.all.intersection([name])
            switch sign {
            case "=": self.schemes = named
            case "-": self.schemes.subtract(named)
            default: self.schemes.formUnion(named)
            }
        }
        guard !self.schemes.isEmpty else { return nil }
    }
}
