import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// The options that a manifest stores, and those that are read from it.
@Suite("Stored options")
struct StoredOptionsTests {
    private static let part = DownloadOptions.Part(first: 5, last: 9)

    private static func manifest(_ label: Manifest.Label) throws -> Manifest {
        try ManifestCodec.decode(
            ManifestCodec.encode(
                Manifest.Header(
                    id: 7, resource: RemoteResource(completeLength: 5), completeLength: 5, device: 1, inode: 2,
                    bootID: "boot", sources: ["http://host/file"], digests: [], label: label)))
    }

    @Test("A part is stored in the header and not among the options, and is read from there")
    func part() throws {
        var request = DownloadRequest(try SourceURL("http://host/file"), to: .file("f"))
        request.options.part = Self.part
        #expect(request.label(inheriting: nil) == Manifest.Label(part: Self.part))
        request.options.segments = .exactly(3)
        let label = request.label(inheriting: nil)
        #expect(label.options?.contains("part") == false)
        #expect(DownloadOptions(try Self.manifest(label)) == request.options)
    }

    @Test("Options that cannot be read cost neither the part of this version nor that of manifests of version 4")
    func unreadable() throws {
        for options in [#"{"syncPolicy":"later"}"#, "{", "[]"] {
            let manifest = try Self.manifest(Manifest.Label(options: options, part: Self.part))
            #expect(DownloadOptions(manifest).part == Self.part)
        }
        for options in [#"{"part":{"first":5,"last":9}}"#, #"{"part":{"first":5,"last":9},"syncPolicy":"later"}"#] {
            #expect(DownloadOptions(try Self.manifest(Manifest.Label(options: options))).part == Self.part)
        }
        #expect(DownloadOptions(try Self.manifest(Manifest.Label(options: "{"))) == DownloadOptions())
    }
}
