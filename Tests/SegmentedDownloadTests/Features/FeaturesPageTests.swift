import Foundation
import Testing

/// Every feature on the page of features has a test.
@Suite struct FeaturesPageTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appending(components: "..", "..", "..").standardizedFileURL

    private static func page() throws -> String {
        let path = "Sources/SegmentedDownload/SegmentedDownload.docc/Features.md"
        return try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
    }

    /// The texts between “ and ” on the page: the names of tests.
    private static func quoted() throws -> [String] {
        try Self.page().split(separator: "“").dropFirst().compactMap {
            $0.split(separator: "”").first.map { String($0) }
        }
    }

    /// The source of all tests.
    private static func tests() throws -> String {
        let directory = Self.root.appending(path: "Tests")
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
        return try names.filter { $0.hasSuffix("Tests.swift") }.map {
            try String(contentsOf: directory.appending(path: $0), encoding: .utf8)
        }.joined()
    }

    @Test("Every test that the page of features quotes exists")
    func namesExist() throws {
        let tests = try Self.tests()
        let quoted = try Self.quoted()
        #expect(quoted.count > 60)
        for name in quoted {
            // As in the source, where quotation marks are escaped.
            let literal = "\"" + name.replacing("\"", with: "\\\"") + "\""
            let isThere = tests.contains("@Test(" + literal) || tests.contains("@Test(\n        " + literal)
            #expect(isThere, "no test is called \(literal)")
        }
    }

    @Test("Every row of the page has a test, or is marked as not yet implemented")
    func rowsAreTold() throws {
        let rows = try Self.page().split(separator: "\n").filter { $0.hasPrefix("| ") }
        #expect(rows.count > 45)
        let heads = ["| Feature ", "| Defect ", "| State ", "| Field "]
        for row in rows where !heads.contains(where: { row.hasPrefix($0) }) {
            #expect(row.contains("“") || row.contains("*Not yet*"), "\(row)")
        }
    }

    @Test("The page's table of states has every state")
    func statesAreMapped() throws {
        let page = try Self.page()
        for state in [
            "queued", "probing", "running", "retrying", "verifying", "paused", "completed", "failed", "cancelled",
        ] {
            #expect(page.contains("``DownloadState/\(state)``"), "\(state)")
        }
    }
}
