import Foundation
import Testing

/// One command of the manual page's examples, as it stands there.
struct ManualExample: Sendable, CustomTestStringConvertible {
    /// For the shell, over one line or more.
    var text: String

    /// The exit status that is written behind it, or that of success.
    var status: Int32 {
        self.text.firstMatch(of: /# exit status (?<status>\d+)$/).flatMap { Int32($0.output.status) } ?? 0
    }

    /// The words before any `=`, as far as options are concerned.
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

    /// What stands in displays of the section of examples.
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
                // The page's language has its own use for a backslash.
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
