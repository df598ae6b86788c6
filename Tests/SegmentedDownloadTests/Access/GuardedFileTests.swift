import Foundation
import TestSupport
import Testing

@testable import SegmentedDownload

#if canImport(Glibc)
    import Glibc
#endif

@Suite("Files with credentials and settings")
struct GuardedFileTests {
    private static func withFile(mode: mode_t, _ body: (String) throws -> Void) async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/file"
            try Data("content".utf8).write(to: URL(fileURLWithPath: path))
            try #require(chmod(path, mode) == 0)
            try body(path)
        }
    }

    @Test(
        "A file that its group or others can write to is refused, with the reason and the remedy",
        arguments: [(0o620, "its group"), (0o602, "others"), (0o666, "its group and others")] as [(mode_t, String)])
    func writable(mode: mode_t, writers: String) async throws {
        try await Self.withFile(mode: mode) { path in
            let file = try GuardedFile(contentsOf: path)
            let error = #expect(throws: DownloadError.self) { try file.requireTrustworthy(as: "WORD") }
            #expect(error?.code == .exists && error?.hint == "chmod go-w WORD")
            let words = "can be written to by \(writers) (mode \(String(mode, radix: 8)))"
            #expect(error?.message.contains(words) == true, "\(String(describing: error))")
        }
    }

    @Test(
        "A file that only its owner can write to is accepted if the owner is the user or root",
        arguments: [0o600, 0o644, 0o400] as [mode_t])
    func own(mode: mode_t) async throws {
        try await Self.withFile(mode: mode) { path in
            let file = try GuardedFile(contentsOf: path)
            try file.requireTrustworthy(as: path)
            #expect(file.bytes == Array("content".utf8) && file.isShared == (mode == 0o644))
        }
        // A file of root, for any user that runs the test.
        try GuardedFile(contentsOf: "/etc/passwd").requireTrustworthy(as: "WORD")
    }

    @Test(
        "A file of another user is refused, and the message names the owner",
        .enabled(if: geteuid() == 0, "it needs root"))
    func foreign() async throws {
        try await Self.withFile(mode: 0o600) { path in
            try #require(chown(path, 12_345, 12_345) == 0)
            let file = try GuardedFile(contentsOf: path)
            let error = #expect(throws: DownloadError.self) { try file.requireTrustworthy(as: "WORD") }
            #expect(error?.code == .exists && error?.message.contains("belongs to uid 12345") == true)
        }
    }

    @Test("A file that is unreadable or endless is an error")
    func unreadable() {
        for path in ["/none", "/", "/dev/zero"] {
            let error = #expect(throws: DownloadError.self) { try GuardedFile(contentsOf: path) }
            #expect(error?.code == .file)
        }
    }
}
