import Foundation
import SegmentedDownloadCore
import SystemPackage
import TestSupport
import Testing

@testable import SegmentedDownload

#if canImport(Glibc)
    import Glibc
#endif

/// Checks of a destination before a byte is fetched.
@Suite("Destinations before a byte is fetched")
struct DestinationSurveyTests {
    @Test(
        "A web page is unexpected if the URL names another kind of file",
        arguments: [
            ("/a/b.iso", "text/html; charset=utf-8", true), ("/a/b.iso", "application/octet-stream", false),
            ("/a/b.iso", nil, false), ("/a/b.html", "text/html", false), ("/a/b.PHP", "text/html", false),
            ("/a/b", "text/html", false), ("/a/.profile", "text/html", false), ("/", "text/html", false),
        ] as [(String, String?, Bool)])
    func page(path: String, mediaType: String?, isUnexpected: Bool) throws {
        let request = DownloadRequest(try SourceURL("http://example.com" + path), to: .directory("."))
        let naming = DestinationNaming(request: request, id: Download.ID(rawValue: "1"), storage: POSIXStorage())
        #expect(naming.isUnexpectedPage(mediaType: mediaType) == isUnexpected)
    }

    @Test(
        "A web page is unexpected if the user chose a name of another kind, whatever the URL is",
        arguments: [
            ("model.safetensors", "/uc", true), ("a.zip", "/a.html", true), ("page.html", "/a.zip", false),
            ("noext", "/a.zip", false), ("dir.d/noext", "/a.zip", false),
        ])
    func chosenPage(name: String, path: String, isUnexpected: Bool) throws {
        let request = DownloadRequest(try SourceURL("http://example.com" + path), to: .file(FilePath(name)))
        let naming = DestinationNaming(request: request, id: Download.ID(rawValue: "1"), storage: POSIXStorage())
        #expect(naming.isUnexpectedPage(mediaType: "text/html; charset=utf-8") == isUnexpected)
    }

    @Test(
        "A directory is not replaced",
        arguments: [DownloadOptions.ExistingFilePolicy.overwrite, .verify, .skip])
    func directory(policy: DownloadOptions.ExistingFilePolicy) async throws {
        try await withTemporaryDirectory { folder in
            let paths = DestinationPaths(path: folder + "/name")
            try FileManager.default.createDirectory(atPath: paths.destination, withIntermediateDirectories: false)
            #expect {
                try Surveyor(storage: POSIXStorage()).survey(paths, policy: policy)
            } throws: { ($0 as? DownloadError)?.code == .exists }
        }
    }

    @Test(
        "A FIFO is not replaced, and a link is",
        arguments: [DownloadOptions.ExistingFilePolicy.overwrite, .update, .verify, .skip])
    func pipe(policy: DownloadOptions.ExistingFilePolicy) async throws {
        try await withTemporaryDirectory { folder in
            let paths = DestinationPaths(path: folder + "/name")
            try #require(mkfifo(paths.destination, 0o600) == 0)
            #expect {
                try Surveyor(storage: POSIXStorage()).survey(paths, policy: policy)
            } throws: { ($0 as? DownloadError)?.code == .exists }
            // It may also get there during the download.
            #expect { try POSIXStorage().checkReplaceable(paths.destination) } throws: {
                ($0 as? StorageError)?.condition == .exists
            }
            try FileManager.default.removeItem(atPath: paths.destination)
            try POSIXStorage().checkReplaceable(paths.destination)
            try FileManager.default.createSymbolicLink(atPath: paths.destination, withDestinationPath: "none")
            try POSIXStorage().checkReplaceable(paths.destination)
            let found = try? Surveyor(storage: POSIXStorage()).survey(paths, policy: policy)
            #expect((found?.survey == .nothing) == (policy == .overwrite))
        }
    }

    @Test("An interrupted download is as old as the younger of its two files", arguments: [false, true])
    func age(isManifestYounger: Bool) async throws {
        try await withTemporaryDirectory { folder in
            let paths = DestinationPaths(path: folder + "/name")
            for (path, seconds) in [
                (paths.part, isManifestYounger ? 1000 : 2000), (paths.manifest, isManifestYounger ? 2000 : 1000),
            ] {
                try Data().write(to: URL(fileURLWithPath: path))
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSince1970: Double(seconds))], ofItemAtPath: path)
            }
            #expect(try OwnedFiles(storage: POSIXStorage()).lastWritten(paths) == 2_000_000_000_000)
        }
    }
}
