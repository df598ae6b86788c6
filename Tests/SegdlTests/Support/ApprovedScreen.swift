import Foundation
import Testing

/// Screens that were looked at and approved, as text files.
enum ApprovedScreen {
    private static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Terminal/Screens")

    /// Expects a text to be the approved one. With `SEGDL_APPROVE=1` in the environment, approves it.
    static func check(_ text: String, _ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let file = self.directory.appendingPathComponent("\(name).txt")
        if ProcessInfo.processInfo.environment["SEGDL_APPROVE"] == "1" {
            try Data(text.utf8).write(to: file)
        }
        let approved = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        #expect(
            text == approved, "look at it, then run the test with SEGDL_APPROVE=1 to approve it",
            sourceLocation: sourceLocation)
    }
}
