import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// What a reader in order means for a part.
@Suite("A part file that is read in order")
struct PartialFileReaderTests {
    @Test("What was handed on is the same file only by an equal strong tag")
    func sameByTag() async throws {
        let range = ByteRange(0..<10)
        for (keepsFiles, tag, response, isSame) in [
            (false, "\"a\"", .partial(range, WatchedPart.resource(100)), true),
            (false, "\"a\"", .partial(range, WatchedPart.resource(100, tag: "\"b\"")), false),
            (false, "W/\"a\"", .partial(range, WatchedPart.resource(100, tag: "W/\"a\"")), false),
            (false, "\"a\"", .notModified(), false), (true, "\"a\"", .partial(range, WatchedPart.resource(100)), false),
        ] as [(Bool, String, RangeResponse, Bool)] {
            try await WatchedPart.run(on: WatchedStorage(keepsFiles: keepsFiles)) { subject in
                try await subject.part.begin(
                    WatchedPart.resource(100, tag: tag), id: 7, sources: [], digests: [], allocates: true)
                #expect(subject.part.isSame(asProvedBy: response) == isSame)
            }
        }
    }

    private static func reader(_ part: PartialFile, length: Int64) -> InOrderReader? {
        InOrderReader(
            part.file, id: 7, algorithms: [.md5], states: [], claims: [], windowLength: 1000, length: length)
    }

    @Test("A reader is made from what is claimed, and replaces the one before, which is closed")
    func replaced() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(1000)
            try subject.fill(20..<40, 0..<10, 10..<20)
            var found: [Range<Int64>] = []
            subject.part.read { claims, _ in
                found = claims
                return Self.reader(subject.part, length: 1000)
            }
            let first = try #require(subject.part.reader)
            #expect(found == [0..<40])
            subject.part.read { _, _ in nil }
            #expect(subject.part.reader == nil)
            // A reader that is closed ends at once.
            try await first.run { _ in Issue.record("a closed reader reads") }
        }
    }

    @Test("Claims of a response may be held back, except of a long one whose bytes go to a descriptor")
    func holds() async throws {
        let output = OutputDescriptor(-1, clock: SystemClock())
        for (isStream, length, mayHold) in [
            (false, nil, true), (false, 1000, true), (true, 500, true), (true, 501, false), (true, nil, false),
        ] as [(Bool, Int64?, Bool)] {
            try await WatchedPart.run { subject in
                subject.part.read { _, _ in
                    guard isStream else { return Self.reader(subject.part, length: 1000) }
                    return InOrderReader(
                        to: output, subject.part.file, id: 7, algorithms: [], windowLength: 1000, length: nil)
                }
                let response = RangeResponse.whole(RemoteResource(completeLength: length))
                #expect(subject.part.mayHold(response) == mayHold)
            }
        }
    }
}
