import Foundation
import Testing

/// A block of commands of the page of recipes that tests run.
struct Recipe: Sendable, CustomTestStringConvertible {
    /// The heading above it.
    let title: String
    let script: String
    /// Its number on the page.
    let number: Int

    /// Whether the servers use TLS, instead of the origin as a proxy.
    var isSecure: Bool { self.title.contains("Earthdata") }

    var testDescription: String { "\(self.title) \(self.number)" }

    static let page: String = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(
            path: "../../../Sources/SegmentedDownload/SegmentedDownload.docc/Recipes.md"
        ).standardizedFileURL
        return (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    }()

    static let all: [Recipe] = {
        var recipes: [Recipe] = []
        var title = ""
        var block: [Substring]?
        for line in Self.page.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("### ") {
                title = String(line.dropFirst(4))
            } else if line == "```sh" {
                block = []
            } else if line == "```", let lines = block {
                recipes.append(Recipe(title: title, script: lines.joined(separator: "\n"), number: recipes.count))
                block = nil
            } else {
                block?.append(line)
            }
        }
        return recipes
    }()

    /// A recorded answer, with `http` URLs: the tests' server stands for the others without TLS.
    static func recorded(_ name: String) throws -> String {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(
            path: "../../../Fixtures/Recorded/\(name)"
        ).standardizedFileURL
        return try String(contentsOf: file, encoding: .utf8).replacing("https://", with: "http://")
    }
}
