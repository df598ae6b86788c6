/// An operator, its replacement, and the function of `Mutant` that computes either.
struct BinaryOperation {
    let kind: Mutation.Kind
    let replacement: String
    let function: String
    var isAssignment = false

    init?(_ operatorText: String) {
        switch operatorText {
        case "<": self.init(.comparison, "<=", "less")
        case "<=": self.init(.comparison, "<", "lessOrEqual")
        case ">": self.init(.comparison, ">=", "greater")
        case ">=": self.init(.comparison, ">", "greaterOrEqual")
        case "==": self.init(.comparison, "!=", "equal")
        case "!=": self.init(.comparison, "==", "notEqual")
        case "&&": self.init(.connective, "||", "and")
        case "||": self.init(.connective, "&&", "or")
        case "+": self.init(.arithmetic, "-", "add")
        case "-": self.init(.arithmetic, "+", "subtract")
        case "+=": self.init(.arithmetic, "-=", "addAssign", isAssignment: true)
        case "-=": self.init(.arithmetic, "+=", "subtractAssign", isAssignment: true)
        case "..<": self.init(.range, "...", "range")
        case "...": self.init(.range, "..<", "closedRange")
        default: return nil
        }
    }

    private init(_ kind: Mutation.Kind, _ replacement: String, _ function: String, isAssignment: Bool = false) {
        self.kind = kind
        self.replacement = replacement
        self.function = function
        self.isAssignment = isAssignment
    }

    /// The operation where the right side is `nil`, so that the left side need not be `Equatable`.
    var withNil: BinaryOperation? {
        switch self.function {
        case "equal": BinaryOperation(self.kind, self.replacement, "isNil")
        case "notEqual": BinaryOperation(self.kind, self.replacement, "isNotNil")
        default: nil
        }
    }

    /// The operation where the right side is `1`.
    var withOne: BinaryOperation? {
        switch self.function {
        case "add": BinaryOperation(self.kind, self.replacement, "addOne")
        case "subtract": BinaryOperation(self.kind, self.replacement, "subtractOne")
        default: nil
        }
    }
}
