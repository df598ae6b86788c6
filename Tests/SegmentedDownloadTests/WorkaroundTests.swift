import Foundation
import Testing

/// The folders named `Workarounds`.
@Suite struct WorkaroundTests {
    @Test("Each workaround names the dependency, and the upstream issue or what would have to change there")
    func references() throws {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appendingPathComponent("Sources")
        let files = try FileManager.default.subpathsOfDirectory(atPath: sources.path)
            .filter { $0.contains("/Workarounds/") && $0.hasSuffix(".swift") }
        #expect(files.count > 5)
        for file in files {
            let text = try String(contentsOf: sources.appendingPathComponent(file), encoding: .utf8)
            let paragraphs = Self.paragraphs(ofComments: text)
            let workarounds = paragraphs.flatMap { $0.components(separatedBy: "Workaround: ").dropFirst() }
            #expect(!workarounds.isEmpty, "\(file) does not say what it works around")
            for workaround in workarounds {
                #expect(
                    ["swift-", "async-http-client"].contains { workaround.hasPrefix($0) },
                    "\(file) does not begin with the dependency: \(workaround)")
                #expect(
                    workaround.contains(#/https:\/\/github\.com\/[^ ]+\/(issues|pull)\/\d+/#)
                        || workaround.contains("No upstream issue yet; "),
                    "\(file) names no upstream issue: \(workaround)")
            }
        }
    }

    /// The paragraphs of a source's documentation comments, each as one line.
    private static func paragraphs(ofComments text: String) -> [String] {
        let lines = text.split(separator: "\n").map { line -> String in
            let code = line.drop { $0 == " " }
            return code.hasPrefix("/// ") ? String(code.dropFirst(4)) : ""
        }
        return lines.split(separator: "").map { $0.joined(separator: " ") }
    }
}
