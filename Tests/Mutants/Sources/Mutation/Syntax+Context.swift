import SwiftSyntax

extension SyntaxProtocol {
    /// The source on one line, without comments.
    var line: String {
        self.tokens(viewMode: .sourceAccurate).map { token in
            let next = token.nextToken(viewMode: .sourceAccurate)
            let isSpaced = !token.trailingTrivia.isEmpty || next?.leadingTrivia.isEmpty == false
            return token.text + (isSpaced ? " " : "")
        }.joined().trimmingSpaces
    }

    /// The names of the enclosing types and the function or property.
    var enclosingFunction: String {
        var names: [String] = []
        var isFunctionFound = false
        var node = self.parent
        while let current = node {
            defer { node = current.parent }
            if let type = current.asProtocol((any NamedDeclSyntax).self), !current.is(FunctionDeclSyntax.self) {
                names.append(type.name.text)
            } else if let type = current.as(ExtensionDeclSyntax.self) {
                names.append(type.extendedType.trimmedDescription)
            } else if let name = current.functionName, !isFunctionFound || current.is(FunctionDeclSyntax.self) {
                isFunctionFound = true
                names.append(name)
            }
        }
        return names.reversed().joined(separator: ".")
    }

    private var functionName: String? {
        if let function = self.as(FunctionDeclSyntax.self) {
            let labels = function.signature.parameterClause.parameters.map { "\($0.firstName.text):" }
            return "\(function.name.text)(\(labels.joined()))"
        }
        if let initializer = self.as(InitializerDeclSyntax.self) {
            let labels = initializer.signature.parameterClause.parameters.map { "\($0.firstName.text):" }
            return "init(\(labels.joined()))"
        }
        if self.is(SubscriptDeclSyntax.self) { return "subscript" }
        if let binding = self.as(PatternBindingSyntax.self), binding.accessorBlock != nil || self.isMember {
            return binding.pattern.trimmedDescription
        }
        return nil
    }

    var isMember: Bool {
        self.parent?.parent?.parent?.is(MemberBlockItemSyntax.self) ?? false
    }

    /// Whether this is a name, a member or a call, and not an extreme value.
    var isPlain: Bool {
        guard
            self.is(DeclReferenceExprSyntax.self) || self.is(MemberAccessExprSyntax.self)
                || self.is(FunctionCallExprSyntax.self)
        else { return false }
        // An implicit member is a constant or a case.
        return self.as(MemberAccessExprSyntax.self).map { $0.base != nil } ?? true
    }

    /// Whether this is the pattern of a `case`.
    var isPattern: Bool {
        var node = self.parent
        while let current = node, !current.is(CodeBlockItemSyntax.self) {
            if current.is(ExpressionPatternSyntax.self) { return true }
            node = current.parent
        }
        return false
    }
}

extension CodeBlockItemSyntax {
    /// Whether this leaves the function or the loop.
    var leaves: Bool {
        guard case .stmt(let statement) = self.item else { return false }
        return statement.is(ReturnStmtSyntax.self) || statement.is(ThrowStmtSyntax.self)
            || statement.is(ContinueStmtSyntax.self) || statement.is(BreakStmtSyntax.self)
    }
}

extension String {
    fileprivate var trimmingSpaces: String {
        String(self.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
