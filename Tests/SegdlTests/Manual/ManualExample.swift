import Foundation
import Testing

/// One command of the manual page's examples.
struct ManualExample: Sendable, CustomTestStringConvertible {
    /// A shell command, of one line or more.
    var text: String

    /// The exit status in the comment after it; by default success.
    var status: Int32 {
        self.text.firstMatch(of: /# exit status (?<status>\d+)$/).flatMap { Int32($0.output.status) } ?? 0
    }

    /// Its words; options without `=` and value.
    var words: [Substring] {
        self.text.split(whereSeparator: \.isWhitespace).map { $0.hasPrefix("--") ? $0.prefix { $0 != "=" } : $0 }
    }

    var testDescription: String { self.text }

    static let all: [ManualExample] = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../scripts/manual.mdoc").standardizedFileURL
        let page = try? String(contentsOf: file, encoding: .utf8)
        return Self.examples(in: page ?? "")
    }()

    /// The commands in the displays of the examples section.
    static func examples(in page: String) -> [ManualExample] {
        var examples: [ManualExample] = []
        var (isInSection, isInDisplay, isContinued) = (false, false, false)
        for line in page.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix(".Sh ") {
                isInSection = line == ".Sh EXAMPLES"
            } else if line.hasPrefix(".Bd -literal") {
                isInDisplay = true
            } else if line == ".Ed" {
                isInDisplay = false
            } else if isInSection, isInDisplay {
                // Backslashes are escaped in the page's source.
                let text = line.replacing(#"\e"#, with: #"\"#)
                if isContinued {
                    examples[examples.count - 1].text += "\n" + text
                } else {
                    examples.append(ManualExample(text: String(text)))
                }
                isContinued = text.hasSuffix(#"\"#)
            }
        }
        return examples
    }
}
