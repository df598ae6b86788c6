/// One change of the source, compiled in beside the original and selected by its number.
public struct Mutation: Hashable, Sendable {
    public enum Kind: String, Sendable {
        /// `<` for `<=`, `==` for `!=` and so on.
        case comparison
        /// `&&` for `||` and the reverse.
        case connective
        /// A condition negated, or a `!` dropped.
        case negation
        /// `true` for `false` and the reverse.
        case literal
        /// `+` for `-` and the reverse.
        case arithmetic
        /// A `+ 1` or `- 1` dropped.
        case oneDropped
        /// A `+ 1` or `- 1` applied twice.
        case oneDoubled
        /// An offset or a count increased by one.
        case oneAdded
        /// `min` for `max` and the reverse.
        case extremum
        /// A half-open range for a closed one, and the reverse.
        case range
        /// A condition of a `guard` replaced by true.
        case guardDropped
        /// The body of an `if` that leaves the function or the loop is never entered.
        case exitDropped
        /// A call or an assignment dropped.
        case statementDropped
        /// Another version of a function, from a list.
        case listed
    }

    public let number: Int
    /// Relative to the package.
    public let file: String
    public let line: Int
    /// The enclosing function, initialiser or property, with its type.
    public let function: String
    public let kind: Kind
    public let original: String
    public let replacement: String
    /// Distinguishes mutations that are otherwise equal, from 1.
    public let occurrence: Int

    /// Identifies the mutation while other code changes.
    public var key: String {
        [self.file, self.function, self.kind.rawValue, self.original, self.replacement, String(self.occurrence)]
            .joined(separator: "\t")
    }
}
