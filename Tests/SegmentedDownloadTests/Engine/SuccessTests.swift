import Foundation
import Testing

/// Everything that makes a success, by the text of the sources. A new place is added here only after the question what is
/// stated about the file there.
@Suite("What makes a success")
struct SuccessTests {
    /// The names of the files under Sources whose text matches an expression.
    private static func files(with expression: String) throws -> Set<String> {
        var sources = URL(fileURLWithPath: #filePath)
        for _ in 0..<4 { sources.deleteLastPathComponent() }
        sources.append(path: "Sources")
        let pattern = try Regex(expression)
        let all = try #require(FileManager.default.enumerator(atPath: sources.path))
        var found: Set<String> = []
        for case let name as String in all where name.hasSuffix(".swift") {
            let text = try String(contentsOf: sources.appending(path: name), encoding: .utf8)
            if try pattern.firstMatch(in: text) != nil { found.insert(String(name.split(separator: "/").last ?? "")) }
        }
        return found
    }

    @Test("Only the gate makes a verified file")
    func gate() throws {
        #expect(try Self.files(with: #"VerifiedFile(\.init)?\("#) == ["VerifiedFile.swift"])
    }

    @Test("Only these places judge a file: what was fetched, what was there, and what several tasks fetched")
    func judges() throws {
        #expect(
            try Self.files(with: #"judged\("#) == [
                "VerifiedFile.swift", "Survey.swift", "DownloadStateMachine+Storage.swift", "Finisher.swift",
                "Finisher+Memory.swift", "SharedFile+Assembly.swift", "SharedFile+Status.swift",
            ])
    }

    @Test("A download completes with a verified file, and its result is made of one, unless another process reports it")
    func results() throws {
        #expect(try Self.files(with: #"\.rest\(\.completed"#) == ["DownloadStateMachine+Storage.swift"])
        #expect(
            try Self.files(with: #"\(\s*reported( path)?:"#) == [
                "DownloadEvent.swift", "DownloadJob+Result.swift", "DownloadEvent+Codable.swift",
                "DownloadEvent+Record.swift",
            ])
        #expect(
            try Self.files(with: #"\.assembled\(VerifiedFile\)|return \.assembled\("#) == ["SharedFile+Assembly.swift"])
    }
}
