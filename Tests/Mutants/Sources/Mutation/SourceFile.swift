import SwiftOperators
import SwiftParser
import SwiftSyntax

/// A file and its mutation sites.
public struct SourceFile {
    public let path: String
    public let text: String
    public let sites: [Site]

    /// - Parameter first: The number of the first mutation.
    public init(path: String, text: String, first: Int) throws {
        self.path = path
        self.text = text
        let parsed = Parser.parse(source: text)
        let folded = OperatorTable.standardOperators.foldAll(parsed) { _ in }
        let finder = SiteFinder(path: path, tree: parsed, first: first)
        finder.walk(folded)
        self.sites = finder.sites
    }

    public var mutations: [Mutation] { self.sites.flatMap(\.mutations) }
}
