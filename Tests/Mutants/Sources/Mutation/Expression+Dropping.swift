import SwiftSyntax

extension ExprSyntax {
    /// Whether this is a call or an assignment that the code may compile without; the compiler rejects the rest.
    func canBeDropped(from item: CodeBlockItemSyntax) -> Bool {
        var expression = self
        while true {
            if let inner = expression.as(TryExprSyntax.self) {
                // The value of a `try?` statement is unused.
                expression = inner.expression
            } else if let inner = expression.as(AwaitExprSyntax.self) {
                expression = inner.expression
            } else if let chain = expression.as(OptionalChainingExprSyntax.self) {
                expression = chain.expression
            } else {
                break
            }
        }
        if let call = expression.as(FunctionCallExprSyntax.self) {
            return !call.isInitializing && !call.isAssertion && !item.isResult
        }
        guard let infix = expression.as(InfixOperatorExprSyntax.self) else { return false }
        if infix.operator.is(AssignmentExprSyntax.self) { return !infix.isInitialization }
        let operation = infix.operator.trimmedDescription
        return operation.hasSuffix("=") && BinaryOperation(operation)?.kind != .comparison
    }
}

extension FunctionCallExprSyntax {
    fileprivate var isInitializing: Bool {
        self.calledExpression.as(MemberAccessExprSyntax.self)?.declName.baseName.text == "init"
    }

    fileprivate var isAssertion: Bool {
        ["precondition", "preconditionFailure", "assert", "assertionFailure", "fatalError"]
            .contains(self.calledExpression.trimmedDescription)
    }
}

extension InfixOperatorExprSyntax {
    /// Whether the assignment may initialize a variable.
    fileprivate var isInitialization: Bool {
        if self.leftOperand.is(DiscardAssignmentExprSyntax.self) { return true }
        var node = self.parent
        while let current = node, !current.is(FunctionDeclSyntax.self), !current.is(AccessorDeclSyntax.self) {
            if current.is(InitializerDeclSyntax.self) {
                let target = self.leftOperand.as(MemberAccessExprSyntax.self)
                if target?.base?.trimmedDescription == "self" { return true }
                break
            }
            node = current.parent
        }
        guard let name = self.leftOperand.as(DeclReferenceExprSyntax.self)?.baseName.text else { return false }
        let finder = UninitializedFinder(name)
        finder.walk(self.root)
        return finder.isFound
    }
}

extension CodeBlockItemSyntax {
    /// Whether this is the only item of a body, and so may be its value.
    fileprivate var isResult: Bool {
        guard let list = self.parent?.as(CodeBlockItemListSyntax.self), list.count == 1, let body = list.parent
        else { return false }
        if body.is(ClosureExprSyntax.self) || body.is(AccessorBlockSyntax.self) { return true }
        if let function = body.parent?.as(FunctionDeclSyntax.self) { return function.signature.returnClause != nil }
        return body.parent?.is(AccessorDeclSyntax.self) ?? false
    }
}

/// Finds a variable of the given name that is declared without a value.
private final class UninitializedFinder: SyntaxVisitor {
    private let name: String
    private(set) var isFound = false

    init(_ name: String) {
        self.name = name
        super.init(viewMode: .sourceAccurate)
    }

    override func visit(_ node: PatternBindingSyntax) -> SyntaxVisitorContinueKind {
        if node.pattern.trimmedDescription == self.name, node.initializer == nil,
            node.typeAnnotation?.type.is(OptionalTypeSyntax.self) == false
        {
            self.isFound = true
        }
        return .visitChildren
    }
}
