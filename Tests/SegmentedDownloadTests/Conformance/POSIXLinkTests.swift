import Foundation
import Testing

@testable import SegmentedDownload

#if canImport(Glibc)
    import Glibc
#endif

/// Links, which a simulated disk does not have.
@Suite("Links on a real disk")
struct POSIXLinkTests {
    @Test("A symbolic link is not opened, and is told from the file that it leads to")
    func symbolic() async throws {
        try await StorageDoor.run(.real) { door in
            try door.put("a", [1])
            let link = door.path("link")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: door.path("a"))
            for mode in [StorageOpenMode.read, .update] {
                await door.expectError(ELOOP, .isLink, of: "open", "link") { try door.storage.open(link, mode) }
            }
            await door.expectError(EEXIST, .exists, of: "open", "link") { try door.storage.open(link, .create) }
            #expect(try door.status(of: "link")?.kind == .link)
            let file = try #require(try door.status(of: "a"))
            #expect(try door.storage.target(of: link)?.isSameFile(as: file) == true)
            try door.put("b", [2])
            try door.storage.rename(door.path("b"), to: link, replacing: true)
            #expect(try door.contents(of: "link") == [2] && door.contents(of: "a") == [1])
        }
    }

    @Test("A symbolic link that leads nowhere has a status and no target, and is removed alone")
    func dangling() async throws {
        try await StorageDoor.run(.real) { door in
            let link = door.path("link")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: door.path("none"))
            #expect(try door.status(of: "link")?.kind == .link && door.storage.target(of: link) == nil)
            try door.storage.remove(link)
            #expect(try door.status(of: "link") == nil)
        }
    }

    @Test("A second name of a file is counted, and is the same file")
    func hard() async throws {
        try await StorageDoor.run(.real) { door in
            try door.put("a", [1])
            try door.storage.link(door.path("a"), to: door.path("b"))
            await door.expectError(EEXIST, .exists, of: "link", "b") {
                try door.storage.link(door.path("a"), to: door.path("b"))
            }
            await door.expectError(ENOENT, .notFound, of: "link", "d") {
                try door.storage.link(door.path("c"), to: door.path("d"))
            }
            let (one, other) = (try #require(try door.status(of: "a")), try #require(try door.status(of: "b")))
            #expect(one.isSame(as: other) && one.linkCount == 2)
            // Nothing to be done (rename(2)): both names stay.
            try door.storage.rename(door.path("a"), to: door.path("b"), replacing: true)
            #expect(try door.status(of: "a")?.linkCount == 2)
            try door.storage.remove(door.path("a"))
            #expect(try door.status(of: "b")?.linkCount == 1 && door.contents(of: "b") == [1])
        }
    }
}
