import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

@Suite("Plans of shared files")
struct SharedFilePlanTests {
    /// What ``SharedFilePlan`` writes, for any length.
    private static func plan(length: Int64) -> [UInt8] {
        var label = Manifest.Label()
        label.userInfo = ["segdl-tasks": "3", "segdl-alignment": "1048576"]
        return ManifestCodec.encode(
            Manifest.Header(
                id: 1, resource: RemoteResource(completeLength: length, validator: .none), completeLength: length,
                device: 0, inode: 1, bootID: "", sources: ["http://h/f"], digests: [], label: label))
    }

    @Test("A plan is read if its file can be divided; one of an impossible length is none")
    func lengths() throws {
        for length in [1, 1 << 30, FileDivision.lengthMax] {
            #expect(try SharedFilePlan(decoding: Self.plan(length: length))?.division.length == length)
        }
        for length in [FileDivision.lengthMax + 1, .max] {
            #expect(try SharedFilePlan(decoding: Self.plan(length: length)) == nil)
        }
    }

    private static func resource(isDateWeak: Bool) -> RemoteResource {
        RemoteResource(
            completeLength: 100,
            validator: Validator(
                entityTag: nil, lastModified: HTTPDate(secondsSinceEpoch: 1_700_000_000), isDateWeak: isDateWeak),
            locator: .named(ResourceName(requested: "http://host/f", target: "http://host/f")))
    }

    private static func plan(isDateWeak: Bool) throws -> SharedFilePlan {
        SharedFilePlan(
            id: 1, try #require(FileDivision(count: 2, length: 100, alignment: 1)),
            of: Self.resource(isDateWeak: isDateWeak),
            DownloadRequest(try SourceURL("http://host/f"), to: .file("f")), announced: nil, inode: 0)
    }

    @Test("Whether a date proves the version of a range depends on the plan's response, not on the task's")
    func weakDate() throws {
        let plan = try Self.plan(isDateWeak: false)
        for isDateWeak in [false, true] {
            let required = try #require(plan.resource(of: 0..<50, as: Self.resource(isDateWeak: isDateWeak)))
            #expect(required.isProvable && required.completeLength == 50)
        }
        #expect(try Self.plan(isDateWeak: true).resource(of: 0..<50, as: Self.resource(isDateWeak: false)) == nil)
    }
}
