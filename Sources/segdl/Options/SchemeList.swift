import ArgumentParser

/// Schemes that URLs may have, as curl's `--proto` says it: `=https`, `-http`, `http,https`.
struct SchemeList: Hashable, ExpressibleByArgument {
    /// Those that can be spoken at all.
    private static let all: Set<String> = ["http", "https"]

    private(set) var schemes = Self.all

    init() {}

    var defaultValueDescription: String { self.schemes.sorted().joined(separator: ",") }

    init?(argument: String) {
        // A list without signs adds to what is allowed, which all of ours are.
        for item in argument.lowercased().split(separator: ",") {
            let sign = item.first.flatMap { "=+-".contains($0) ? $0 : nil }
            let name = String(sign == nil ? item : item.dropFirst())
            guard !name.isEmpty, name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) else { return nil }
            // Others are curl's, and not spoken here.
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
