import Foundation
import Testing

@testable import SegmentedDownload

/// Paths of destinations, and those that the library refuses.
@Suite("Paths of destinations")
struct DestinationPathTests {
    @Test(
        "A relative path begins in the group's directory",
        arguments: [
            ("a", "/srv/a"), ("d/a", "/srv/d/a"), ("./a", "/srv/./a"), (".", "/srv"), ("", "/srv"), ("/x/a", "/x/a"),
            ("../a", "/srv/../a"),
        ] as [(FilePath, FilePath)])
    func resolved(path: FilePath, result: FilePath) {
        #expect(DownloadRequest.Destination.file(path).resolved(in: "/srv") == .file(result))
        #expect(DownloadRequest.Destination.directory(path).resolved(in: "/srv") == .directory(result))
        #expect(DownloadRequest.Destination.file(path).resolved(in: ".") == .file(path))
        #expect(DownloadRequest.Destination.descriptor(1).resolved(in: "/srv") == .descriptor(1))
    }

    @Test(
        "Spellings of one path that differ in ./ and slashes are the same destination",
        arguments: [
            ("a", "a"), ("./a", "a"), ("././a", "a"), (".//a", "a"), ("./", "."), ("././.", "."), ("d//a/", "d/a"),
            ("d/./a", "d/./a"), ("/./a", "/./a"), ("../a", "../a"), ("/", "/"), ("", ""),
        ] as [(FilePath, FilePath)])
    func normalized(path: FilePath, result: FilePath) {
        #expect(DownloadRequest.Destination.file(path).normalized == .file(result))
        #expect(DownloadRequest.Destination.directory(path).normalized == .directory(result))
    }

    /// A name in Latin-1. As text it would be another name.
    private static let latin = FilePath(platformString: [0x66, CChar(bitPattern: 0xFC), 0])

    @Test("A path that is not UTF-8 is refused, since its text would name another file")
    func foreignPath() async throws {
        #expect(Self.latin.string == "f\u{FFFD}")
        let source = try SourceURL("http://127.0.0.1:1/file")
        for destination in [DownloadRequest.Destination.file(Self.latin), .directory(Self.latin)] {
            let error = #expect(throws: DownloadError.self) {
                try DownloadRequest(source, to: destination).validate()
            }
            #expect(error?.code == .usage)
        }
        #expect(await code { _ = try await SavedDownload(at: Self.latin) } == .usage)
        #expect(await code { _ = try await SavedDownload.paths(in: Self.latin) } == .usage)
        #expect(await code { _ = try await DiskUsage(of: Self.latin) } == .usage)
        #expect(await code { _ = try await DiskUsage.deleteInterrupted(in: Self.latin, olderThan: .zero) } == .usage)
        #expect(await code { _ = try await FileCheck(of: Self.latin) } == .usage)
        #expect(await code { _ = try Netrc(contentsOf: Self.latin) } == .usage)
        #expect(await code { try CookieJar().load(Self.latin) } == .usage)
        #expect(await code { try await DownloadService(directory: Self.latin).run() } == .usage)
        #expect(
            await code {
                try await withDownloadClient { try await $0.withGroup(named: "a", in: Self.latin) { _ in } }
            } == .usage)
        let history = HistoryPolicy(path: Self.latin)
        #expect(
            await code {
                try await withDownloadClient { try await $0.withGroup(named: "a", history: history) { _ in } }
            } == .usage)
        for configuration in Self.configurations {
            #expect(await code { try await withDownloadClient(configuration) { _ in } } == .usage)
        }
    }

    private static let configurations = {
        var configurations = [DownloadConfiguration](repeating: DownloadConfiguration(), count: 3)
        configurations[0].trust.authorityFile = Self.latin
        configurations[1].history.path = Self.latin
        configurations[2].memory = ServerMemory(path: Self.latin)
        return configurations
    }()
}
