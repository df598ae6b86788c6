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
}
