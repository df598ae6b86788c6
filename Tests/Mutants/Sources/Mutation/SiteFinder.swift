import SwiftSyntax

/// Finds the sites of a file, outer ones before inner ones.
final class SiteFinder: SyntaxVisitor {
    private(set) var sites: [Site] = []
    private let path: String
    private let lines: SourceLocationConverter
    private var next: Int
    private var occurrences: [String: Int] = [:]

    init(path: String, tree: SourceFileSyntax, first: Int) {
        self.path = path
        self.lines = SourceLocationConverter(fileName: path, tree: tree)
        self.next = first
        super.init(viewMode: .sourceAccurate)
    }

    // MARK: Operators

    override func visit(_ node: InfixOperatorExprSyntax) -> SyntaxVisitorContinueKind {
        let member = node.leftOperand.as(MemberAccessExprSyntax.self)?.declName.baseName.text
        if node.operator.is(AssignmentExprSyntax.self), let member, Self.places.contains(member) {
            self.addOne(to: node.rightOperand)
        }
        guard let token = node.operator.as(BinaryOperatorExprSyntax.self)?.operator,
            var operation = BinaryOperation(token.text), operation.kind == .range || !node.isPattern
        else { return .visitChildren }
        let (left, right) = (node.leftOperand, node.rightOperand)
        if [left, right].contains(where: { $0.is(NilLiteralExprSyntax.self) }) {
            guard right.is(NilLiteralExprSyntax.self), let compared = operation.withNil else { return .visitChildren }
            operation = compared
        }
        var changes = [Change(operation.kind, "\(left.line) \(operation.replacement) \(right.line)")]
        if right.trimmedDescription == "1", let one = operation.withOne {
            operation = one
            changes.append(Change(.oneDropped, left.line))
            changes.append(Change(.oneDoubled, "\(left.line) \(token.text) 1 \(token.text) 1"))
        }
        self.add(node, changes) { number in
            [
                .open(node, "Mutant.\(operation.function)(\(number), \(operation.isAssignment ? "&" : "")"),
                .replace(token, ","), .close(node, ")"),
            ]
        }
        return .visitChildren
    }

    override func visit(_ node: PrefixOperatorExprSyntax) -> SyntaxVisitorContinueKind {
        guard node.operator.text == "!" else { return .visitChildren }
        self.add(node, [Change(.negation, node.expression.line)]) { number in
            [.replace(node.operator, "Mutant.not(\(number), "), .close(node, ")")]
        }
        return .visitChildren
    }

    override func visit(_ node: BooleanLiteralExprSyntax) -> SyntaxVisitorContinueKind {
        guard !node.isPattern else { return .skipChildren }
        let text = node.literal.text
        self.add(node, [Change(.literal, text == "true" ? "false" : "true")]) { number in
            [.replace(node.literal, "Mutant.literal(\(number), \(text))")]
        }
        return .skipChildren
    }

    override func visit(_ node: FunctionCallExprSyntax) -> SyntaxVisitorContinueKind {
        guard let name = node.calledExpression.as(DeclReferenceExprSyntax.self)?.baseName else { return .visitChildren }
        // An assertion always holds in correct code: a mutation of it shows nothing about the tests.
        if Self.assertions.contains(name.text) { return .skipChildren }
        let other = ["min": "max", "max": "min"][name.text]
        if let other, node.arguments.count >= 2, let first = node.arguments.first,
            node.arguments.allSatisfy({ $0.label == nil })
        {
            self.add(node, [Change(.extremum, other + node.line.dropFirst(3))]) { number in
                [.replace(name, "Mutant.\(name.text)"), .open(first, "\(number), ")]
            }
        }
        return .visitChildren
    }

    private static let assertions: Set = [
        "precondition", "preconditionFailure", "assert", "assertionFailure", "fatalError",
    ]

    // MARK: Places

    override func visit(_ node: LabeledExprSyntax) -> SyntaxVisitorContinueKind {
        if let label = node.label?.text, Self.places.contains(label) { self.addOne(to: node.expression) }
        return .visitChildren
    }

    private func addOne(to value: ExprSyntax) {
        // Operators are mutated themselves, and one more than an extreme value overflows.
        guard value.isPlain else { return }
        self.add(value, [Change(.oneAdded, "\(value.line) + 1")]) { number in
            [.open(value, "Mutant.plain(\(number), "), .close(value, ")")]
        }
    }

    /// The labels of offsets and counts in this code; the compiler rejects mutations of other types.
    private static let places: Set = [
        "at", "from", "to", "position", "lowerBound", "upperBound", "limit", "writesFrom", "responseEnd", "offset",
        "count", "length", "completeLength", "durableCount",
    ]

    // MARK: Conditions

    override func visit(_ node: IfExprSyntax) -> SyntaxVisitorContinueKind {
        if node.elseBody == nil, let last = node.body.statements.last, last.leaves, let first = node.conditions.first {
            self.add(node, original: "if \(node.conditions.line)", [Change(.exitDropped, "")]) { number in
                [.open(first, "Mutant.keeps(\(number)), ")]
            }
        }
        self.negate(node.conditions)
        return .visitChildren
    }

    override func visit(_ node: GuardStmtSyntax) -> SyntaxVisitorContinueKind {
        for element in node.conditions {
            guard case .expression(let condition) = element.condition else { continue }
            self.add(condition, original: "guard \(condition.line)", [Change(.guardDropped, "")]) { number in
                [.open(condition, "Mutant.passes(\(number), "), .close(condition, ")")]
            }
        }
        self.negate(node.conditions)
        return .visitChildren
    }

    override func visit(_ node: WhileStmtSyntax) -> SyntaxVisitorContinueKind {
        self.negate(node.conditions)
        return .visitChildren
    }

    override func visit(_ node: WhereClauseSyntax) -> SyntaxVisitorContinueKind {
        self.negate(node.condition)
        return .visitChildren
    }

    override func visit(_ node: TernaryExprSyntax) -> SyntaxVisitorContinueKind {
        self.negate(node.condition)
        return .visitChildren
    }

    private func negate(_ conditions: ConditionElementListSyntax) {
        for element in conditions {
            if case .expression(let condition) = element.condition { self.negate(condition) }
        }
    }

    /// Negates a condition, unless its operator is mutated itself.
    private func negate(_ condition: ExprSyntax) {
        let infix = condition.as(InfixOperatorExprSyntax.self)?.operator.trimmedDescription
        if let infix, ["==", "!="].contains(infix) { return }
        if condition.as(PrefixOperatorExprSyntax.self)?.operator.text == "!" { return }
        if condition.is(BooleanLiteralExprSyntax.self) { return }
        self.add(condition, [Change(.negation, "!(\(condition.line))")]) { number in
            [.open(condition, "Mutant.condition(\(number), "), .close(condition, ")")]
        }
    }

    // MARK: Statements

    override func visit(_ node: CodeBlockItemSyntax) -> SyntaxVisitorContinueKind {
        guard case .expr(let expression) = node.item, expression.canBeDropped(from: node) else { return .visitChildren }
        self.add(expression, [Change(.statementDropped, "")]) { number in
            [.open(expression, "if Mutant.keeps(\(number)) { "), .close(expression, " }")]
        }
        return .visitChildren
    }

    // MARK: Adding

    private struct Change {
        let kind: Mutation.Kind
        let replacement: String

        init(_ kind: Mutation.Kind, _ replacement: String) {
            self.kind = kind
            self.replacement = replacement
        }
    }

    private func add(
        _ node: some SyntaxProtocol, original: String? = nil, _ changes: [Change], edits: (Int) -> [Edit]
    ) {
        let function = node.enclosingFunction
        let original = original ?? node.line
        let line = self.lines.location(for: node.positionAfterSkippingLeadingTrivia).line
        let number = self.next
        let mutations = changes.enumerated().map { index, change in
            let alike = "\(function)\t\(change.kind)\t\(original)\t\(change.replacement)"
            self.occurrences[alike, default: 0] += 1
            return Mutation(
                number: number + index, file: self.path, line: line, function: function, kind: change.kind,
                original: original, replacement: change.replacement, occurrence: self.occurrences[alike] ?? 1)
        }
        self.next += mutations.count
        self.sites.append(Site(mutations: mutations, edits: edits(number)))
    }
}

extension Edit {
    fileprivate static func open(_ node: some SyntaxProtocol, _ text: String) -> Edit {
        Edit(offset: node.positionAfterSkippingLeadingTrivia.utf8Offset, kind: .open, text: text)
    }

    fileprivate static func close(_ node: some SyntaxProtocol, _ text: String) -> Edit {
        Edit(offset: node.endPositionBeforeTrailingTrivia.utf8Offset, kind: .close, text: text)
    }

    fileprivate static func replace(_ token: TokenSyntax, _ text: String) -> Edit {
        let offset = token.positionAfterSkippingLeadingTrivia.utf8Offset
        return Edit(offset: offset, kind: .replace(token.trimmedLength.utf8Length), text: text)
    }
}
