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
        /// An offset or a count one too many.
        case oneAdded
        /// `min` for `max` and the reverse.
        case extremum
        /// A range with its end for one without, and the reverse.
        case range
        /// A condition of a `guard` taken for true.
        case guardDropped
        /// The body of an `if` that leaves the function or the loop is never entered.
        case exitDropped
        /// A call or an assignment dropped.
        case statementDropped
    }

    public let number: Int
    /// Relative to the package.
    public let file: String
    public let line: Int
    /// The function, initialiser or property around it, with its type.
    public let function: String
    public let kind: Kind
    public let original: String
    public let replacement: String
    /// Which of those that are otherwise alike, from 1.
    public let occurrence: Int

    /// What stays the same when other code changes.
    public var key: String {
        [self.file, self.function, self.kind.rawValue, self.original, self.replacement, String(self.occurrence)]
            .joined(separator: "\t")
    }
}
