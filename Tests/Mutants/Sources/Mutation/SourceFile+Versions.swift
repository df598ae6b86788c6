import SwiftParser
import SwiftSyntax

extension SourceFile {
    /// Compiles in other versions of the file beside the original; the number of a version selects it.
    ///
    /// Every function that differs receives the bodies of all its versions. A version that differs elsewhere, such as in
    /// a signature, has no site.
    ///
    /// - Parameter versions: The names and texts, by number.
    public init(path: String, text: String, versions: [Int: (name: String, text: String)]) {
        let tree = Parser.parse(source: text)
        let lines = SourceLocationConverter(fileName: path, tree: tree)
        var sites: [Site] = []
        var begun: Set<Int> = []
        // The last version of a body is the innermost; only the original in it may need a `return`.
        for (number, version) in versions.sorted(by: { $0.key > $1.key }) {
            let differences = Syntax(tree).differences(from: Syntax(Parser.parse(source: version.text))) ?? []
            for (part, other) in differences.reversed() {
                let start = part.node.positionAfterSkippingLeadingTrivia
                let end = part.node.endPositionBeforeTrailingTrivia
                let isInnermost = begun.insert(start.utf8Offset).inserted
                let (open, close) = part.wrapping(other, number: number, isInnermost: isInnermost)
                let mutation = Mutation(
                    number: number, file: path, line: lines.location(for: start).line,
                    function: part.node.enclosingFunction, kind: .listed, original: "", replacement: version.name,
                    occurrence: 1)
                let edits = [
                    Edit(offset: start.utf8Offset, kind: .open, text: open),
                    Edit(offset: end.utf8Offset, kind: .close, text: close),
                ]
                sites.insert(Site(mutations: [mutation], edits: edits), at: 0)
            }
        }
        self.path = path
        self.text = text
        self.sites = sites
    }
}

/// A part of a file that may differ between versions.
private enum Part {
    case body(CodeBlockItemListSyntax, isVoid: Bool)
    /// The initial value of a property, or the default of a parameter.
    case value(ExprSyntax)

    init?(_ node: Syntax) {
        if case .getter(let statements) = node.as(AccessorBlockSyntax.self)?.accessors {
            self = .body(statements, isVoid: false)
        } else if let block = node.as(CodeBlockSyntax.self), let owner = block.parent {
            if let function = owner.as(FunctionDeclSyntax.self) {
                let type = function.signature.returnClause?.type.trimmedDescription
                self = .body(block.statements, isVoid: [nil, "Void", "()"].contains(type))
            } else if let accessor = owner.as(AccessorDeclSyntax.self) {
                self = .body(block.statements, isVoid: accessor.accessorSpecifier.text != "get")
            } else if owner.is(InitializerDeclSyntax.self) || owner.is(DeinitializerDeclSyntax.self) {
                self = .body(block.statements, isVoid: true)
            } else {
                return nil
            }
        } else if let clause = node.as(InitializerClauseSyntax.self), let owner = clause.parent,
            owner.isMember || owner.is(FunctionParameterSyntax.self)
        {
            self = .value(clause.value)
        } else {
            return nil
        }
    }

    var node: Syntax {
        switch self {
        case .body(let statements, _): Syntax(statements)
        case .value(let value): Syntax(value)
        }
    }

    /// The texts before and after this part that add another version of it.
    func wrapping(_ other: Part, number: Int, isInnermost: Bool) -> (open: String, close: String) {
        let (condition, text) = ("Mutant.isActive(\(number))", other.node.trimmedDescription)
        switch self {
        case .body:
            let start = isInnermost ? self.leadingReturn : ""
            return ("if \(condition) { \(other.leadingReturn)\(text) } else { \(start)", " }")
        case .value: return ("(\(condition) ? (\(text)) : (", "))")
        }
    }

    /// `return ` if the body returns the value of its only expression: a branch with several statements rules that out.
    private var leadingReturn: String {
        guard case .body(let statements, isVoid: false) = self, statements.count == 1, let item = statements.first?.item
        else { return "" }
        switch item {
        case .expr: return "return "
        case .stmt(let statement): return statement.is(ExpressionStmtSyntax.self) && !item.returns ? "return " : ""
        case .decl: return ""
        }
    }
}

extension SyntaxProtocol {
    /// The smallest parts that contain all differences from another version. Nil if a difference is in none.
    fileprivate func differences(from other: Syntax) -> [(Part, Part)]? {
        if self.description == other.description { return [] }
        let (children, others) = (self.children(viewMode: .sourceAccurate), other.children(viewMode: .sourceAccurate))
        if self.kind == other.kind, children.count == others.count, !children.isEmpty {
            let found = zip(children, others).map { $0.differences(from: $1) }
            if found.allSatisfy({ $0 != nil }) { return found.flatMap { $0 ?? [] } }
        }
        guard let part = Part(Syntax(self)), let otherPart = Part(other), !part.node.trimmedDescription.isEmpty
        else { return nil }
        return [(part, otherPart)]
    }

    /// Whether it contains a `return` of the enclosing function.
    fileprivate var returns: Bool {
        if self.is(ReturnStmtSyntax.self) { return true }
        if self.is(ClosureExprSyntax.self) || self.is(DeclSyntax.self) { return false }
        return self.children(viewMode: .sourceAccurate).contains { $0.returns }
    }
}
