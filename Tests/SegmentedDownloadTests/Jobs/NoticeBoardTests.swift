import Foundation
import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

/// The file through which processes share notices.
@Suite("Notice board")
struct NoticeBoardTests {
    /// Runs `body` with a directory in a tmpfs.
    private static func withDirectory(_ body: (String) throws -> Void) async throws {
        try await TestPlaces.take(.locks) {
            let path = "/dev/shm/segdl-test-\(UUID().uuidString)"
            try FileManager.default.createDirectory(
                atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            defer { try? FileManager.default.removeItem(atPath: path) }
            try body(path)
        }
    }

    private static func file(_ parent: String, isOwn: Bool = true) -> NoticeFile? {
        NoticeFile(in: parent, "segdl", isOwn: isOwn, bootID: "boot")
    }

    private static func board(_ parent: String) throws -> NoticeBoard {
        NoticeBoard(try #require(Self.file(parent)))
    }

    @Test("A refusal reaches the other processes once, in the time of their clocks, and not its own process")
    func sharing() async throws {
        try await Self.withDirectory { directory in
            let (one, other) = (try Self.board(directory), try Self.board(directory))
            #expect(one.news(now: .zero).isEmpty)
            one.post(HostNotice(.refusal, host: HostKey("host"), until: .seconds(70)), now: .seconds(10))
            #expect(one.news(now: .seconds(10)).isEmpty)
            let news = other.news(now: .seconds(1000))
            #expect(news.map(\.host) == [HostKey("host")])
            let until = try #require(news.first).until
            #expect(until > .seconds(1000) && until <= .seconds(1060))
            #expect(other.news(now: .seconds(1000)).isEmpty)
            one.post(HostNotice(.refusal, host: HostKey("host"), until: .seconds(300)), now: .seconds(10))
            #expect(other.news(now: .seconds(1000)).count == 1)
            // One that begins later.
            #expect(try Self.board(directory).news(now: .zero).count == 1)
            let mode = try FileManager.default.attributesOfItem(atPath: directory + "/segdl")[.posixPermissions]
            #expect(mode as? Int == 0o700)
        }
    }

    @Test("An offer, and that it was taken, reach each other process once")
    func offer() async throws {
        try await Self.withDirectory { directory in
            let boards = [try Self.board(directory), try Self.board(directory), try Self.board(directory)]
            let post = { (board: NoticeBoard, kind: HostNotice.Kind) in
                board.post(HostNotice(kind, host: HostKey("host"), until: .seconds(500)), now: .zero)
            }
            let news = { boards.map { $0.news(now: .zero).map(\.kind) } }
            post(boards[0], .offer)
            #expect(news() == [[], [.offer], [.offer]])
            #expect(news() == [[], [], []])
            post(boards[1], .taken)
            #expect(news() == [[.taken], [], [.taken]])
            #expect(news() == [[], [], []])
            post(boards[2], .waiting)
            boards[0].post(HostNotice(.waiting, host: HostKey("host"), until: .seconds(400)), now: .zero)
            #expect(news() == [[], [.waiting], [.waiting]], "the one that waits longer learns of the other")
        }
    }

    @Test("A place that another user could have made, a link, and a place that is not in memory are not used")
    func untrusted() async throws {
        try await Self.withDirectory { directory in
            let manager = FileManager.default
            try manager.createDirectory(atPath: directory + "/real", withIntermediateDirectories: false)
            try manager.createSymbolicLink(atPath: directory + "/segdl", withDestinationPath: directory + "/real")
            #expect(Self.file(directory) == nil, "a link to a directory")
            try manager.removeItem(atPath: directory + "/segdl")
            #expect(Self.file(directory) != nil)
            try manager.removeItem(atPath: directory + "/segdl/notices")
            try manager.createSymbolicLink(
                atPath: directory + "/segdl/notices", withDestinationPath: directory + "/real/target")
            #expect(Self.file(directory) == nil && !manager.fileExists(atPath: directory + "/real/target"))
            try manager.removeItem(atPath: directory + "/segdl/notices")
            for (path, mode) in [(directory + "/segdl", 0o777), (directory, 0o770)] {
                try manager.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
                #expect(Self.file(directory) == nil, "mode \(String(mode, radix: 8))")
                try manager.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
            }
            // Other users may write there, but the sticky bit keeps them from replacing the directory in it.
            try manager.setAttributes([.posixPermissions: 0o1777], ofItemAtPath: directory)
            #expect(Self.file(directory) == nil && Self.file(directory, isOwn: false) != nil)
            #expect(Self.file("/proc") == nil && Self.file(directory + "/none") == nil)
        }
    }

    @Test("A damaged or shortened file shares nothing, and the next notice is shared again")
    func damaged() async throws {
        try await Self.withDirectory { directory in
            let (one, other) = (try Self.board(directory), try Self.board(directory))
            let path = URL(fileURLWithPath: directory + "/segdl/notices")
            try Data((0..<5000).map { UInt8(truncatingIfNeeded: $0) }).write(to: path)
            #expect(try Self.board(directory).news(now: .zero).isEmpty)
            one.post(HostNotice(.refusal, host: HostKey("host"), until: .seconds(60)), now: .zero)
            #expect(other.news(now: .zero).count == 1)
            #expect(truncate(path.path, 10) == 0)
            #expect(try Self.board(directory).news(now: .zero).isEmpty)
        }
    }
}
