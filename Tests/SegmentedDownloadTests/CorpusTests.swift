import Foundation
import FuzzTargets
import SegmentedDownload
import Testing

/// Replays the fuzzer's corpus, which covers every known path through a reader.
@Suite("Corpus")
struct CorpusTests {
    private static let directory = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appending(components: "..", "..", "Fixtures", "Corpus")

    @Test("Every stored input has the properties of its reader", arguments: FuzzTarget.allCases)
    func replay(target: FuzzTarget) throws {
        let directory = Self.directory.appending(component: target.rawValue)
        let inputs = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
        #expect(!inputs.isEmpty)
        for input in inputs {
            try target.check([UInt8](Data(contentsOf: input)))
        }
    }

    @Test("The corpus has an accepted digest of every algorithm, for the fuzzer to vary")
    func everyAlgorithm() throws {
        let directory = Self.directory.appending(component: FuzzTarget.digest.rawValue)
        let accepted = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
            .compactMap { try ExpectedDigest(String(decoding: Data(contentsOf: $0), as: UTF8.self))?.algorithm }
        #expect(Set(accepted) == Set(ExpectedDigest.Algorithm.allCases))
    }

    @Test("Every corpus belongs to a reader")
    func complete() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Self.directory.path)
        #expect(Set(names) == Set(FuzzTarget.allCases.map(\.rawValue)))
    }
}
