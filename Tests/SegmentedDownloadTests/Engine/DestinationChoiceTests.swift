import Testing

@testable import SegmentedDownload

/// Which destinations a response may still rename.
@Suite("The choice of a destination")
struct DestinationChoiceTests {
    private static let paths = DestinationPaths(directory: "folder", name: "file.bin")

    @Test("Only in a directory may a response name the file, and only until the name is settled")
    func settles() {
        for destination in [DownloadRequest.Destination.file("folder/file.bin"), .descriptor(1)] {
            var choice = DestinationChoice(destination)
            choice.paths = Self.paths
            #expect(choice.isSettled && choice.renamed(to: "other.iso") == nil)
        }
        var choice = DestinationChoice(.directory("folder"))
        choice.paths = Self.paths
        #expect(!choice.isSettled)
        #expect(choice.renamed(to: "other.iso") == DestinationPaths(directory: "folder", name: "other.iso"))
        choice.settle()
        #expect(choice.isSettled && choice.renamed(to: "other.iso") == nil)
    }

    @Test("The present name is no other name, and before a survey there is none")
    func same() {
        var choice = DestinationChoice(.directory("folder"))
        #expect(choice.renamed(to: "other.iso") == nil)
        choice.paths = Self.paths
        #expect(choice.renamed(to: "file.bin") == nil)
        // With the policy to rename, the survey has numbered the name.
        choice.first = Self.paths
        choice.paths = DestinationPaths(directory: "folder", name: "file.1.bin")
        #expect(choice.renamed(to: "file.bin") == nil)
    }
}
