import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// How a request's sources are recorded in a manifest.
@Suite("Sources in a manifest")
struct RecordedSourceTests {
    @Test("The reference is marked unless it is the first, and so is a source that a server's list named")
    func marks() throws {
        var request = DownloadRequest(try SourceURL("http://user:word@one/file"))
        let (second, third) = (try SourceURL("http://two/file"), try SourceURL("http://three/file"))
        request.mirrors = [second, third]
        request.foreignSources = [third]
        for (reference, sources) in [
            (0, ["http://one/file", "http://two/file", "~http://three/file"]),
            (1, ["http://one/file", "*http://two/file", "~http://three/file"]),
            (2, ["http://one/file", "http://two/file", "*~http://three/file"]),
        ] {
            let recorded = request.recordedSources(reference: SourceID(reference))
            #expect(recorded == sources)
            let read = recorded.map { RecordedSource(recorded: $0) }
            #expect(read.map(\.isForeign) == [false, false, true])
            #expect(read.reference == read[reference].url)
        }
    }
}
