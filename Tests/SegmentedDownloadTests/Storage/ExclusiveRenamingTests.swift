import Foundation
import Testing

@testable import SegmentedDownload

@Suite("Renaming to a name that must not exist")
struct ExclusiveRenamingTests {
    private typealias Links = WatchedStorage.Links

    private static let part = WatchedPart.partName
    private static let rename = "rename \(part) to file.bin"
    private static let trials = [
        "create privately \(part).try1", "link \(part).try1 to \(part).try2", "remove \(part).try1",
        "remove \(part).try2",
    ]
    private static let renumberedTrials = [trials[0], trials[1], trials[3], trials[2]]
    private static let refusedTrials = [trials[0], trials[1], trials[2]]
    private static let byLink = ["link \(part) to file.bin", "remove \(part)"]
    private static let byClaim = ["create file.bin", "rename over \(part) to file.bin"]

    /// Runs `body` with a part of ten bytes, on a disk that cannot rename exclusively.
    private static func run(_ links: Links, _ body: (WatchedPart) throws -> Void) async throws {
        try await WatchedPart.run { subject in
            try subject.write(0..<10)
            subject.disk.setLinks(links)
            subject.disk.fail(Self.rename, .unsupported)
            _ = subject.disk.take()
            try body(subject)
        }
    }

    @Test("An exclusive rename is one call")
    func plain() async throws {
        try await WatchedPart.run { subject in
            _ = subject.disk.take()
            try subject.disk.renameExclusively(subject.paths.part, to: subject.paths.destination)
            #expect(subject.disk.take() == [Self.rename])
        }
    }

    @Test("Without it a link is made where two empty files show that it keeps the identity, and else a claim")
    func ways() async throws {
        for (links, calls) in [
            (.same, Self.trials + [Self.trials[2]] + Self.byLink), (.renumbered, Self.renumberedTrials + Self.byClaim),
            (.refused, Self.refusedTrials + Self.byClaim),
        ] as [(Links, [String])] {
            try await Self.run(links) { subject in
                let before = try subject.part.file.status()
                try subject.disk.renameExclusively(subject.paths.part, to: subject.paths.destination)
                #expect(subject.disk.take() == [Self.rename] + calls)
                #expect(try subject.disk.status(of: subject.paths.destination)?.isSameFile(as: before) == true)
                #expect(!subject.exists(subject.paths.part))
            }
        }
    }

    @Test("Links are tried once for each file system", arguments: WatchedStorage.Links.allCases)
    func once(links: WatchedStorage.Links) async throws {
        try await Self.run(links) { subject in
            try subject.disk.renameExclusively(subject.paths.part, to: subject.paths.destination)
            _ = subject.disk.take()
            try FileManager.default.moveItem(atPath: subject.paths.destination, toPath: subject.paths.part)
            try subject.disk.renameExclusively(subject.paths.part, to: subject.paths.destination)
            #expect(subject.disk.take() == [Self.rename] + (links == .same ? Self.byLink : Self.byClaim))
        }
    }

    @Test("A name that is taken stays as it is", arguments: WatchedStorage.Links.allCases)
    func taken(links: WatchedStorage.Links) async throws {
        try await Self.run(links) { subject in
            try subject.put("mine", at: subject.paths.destination)
            #expect(throws: StorageError.self) {
                try subject.disk.renameExclusively(subject.paths.part, to: subject.paths.destination)
            }
            #expect(try subject.contents(of: subject.paths.destination) == Array("mine".utf8))
            #expect(try subject.contents(of: subject.paths.part) == WatchedPart.bytes(0..<10))
        }
    }

    @Test("Where links fail after all, a claim is made, and they are tried again")
    func forgotten() async throws {
        try await Self.run(.refused) { subject in
            let device = try subject.part.file.status().device
            subject.disk.linkFacts[device] = true
            try subject.disk.renameExclusively(subject.paths.part, to: subject.paths.destination)
            #expect(subject.disk.take() == [Self.rename, Self.byLink[0]] + Self.byClaim)
            #expect(subject.disk.linkFacts[device] == nil)
        }
    }

    @Test("A file with the name of the empty files stays, and a claim is made", arguments: [0, 1])
    func foreignTrial(index: Int) async throws {
        try await Self.run(.same) { subject in
            let path = LinkFacts.trials(beside: subject.paths.part)[index]
            try subject.put("mine", at: path)
            try subject.disk.renameExclusively(subject.paths.part, to: subject.paths.destination)
            #expect(Array(subject.disk.take().suffix(2)) == Self.byClaim)
            #expect(try subject.contents(of: path) == Array("mine".utf8))
        }
    }

    @Test("A full disk says nothing about links")
    func full() async throws {
        try await Self.run(.same) { subject in
            subject.disk.fail("link \(Self.part).try1 to \(Self.part).try2", .noSpace)
            try subject.disk.renameExclusively(subject.paths.part, to: subject.paths.destination)
            #expect(Array(subject.disk.take().suffix(2)) == Self.byClaim)
            #expect(subject.disk.linkFacts[try subject.part.file.status().device] == nil)
        }
    }

    @Test("Where the identity does not matter, links are not tried first", arguments: WatchedStorage.Links.allCases)
    func published(links: WatchedStorage.Links) async throws {
        try await Self.run(links) { subject in
            try subject.disk.publish(subject.part.file, from: subject.paths.part, to: subject.paths.destination)
            let calls = links == .refused ? [Self.byLink[0]] + Self.byClaim : Self.byLink
            #expect(subject.disk.take() == [Self.rename] + calls)
            #expect(try subject.contents(of: subject.paths.destination) == WatchedPart.bytes(0..<10))
        }
    }

    @Test("Other failures of the rename are reported, and nothing else is tried")
    func failed() async throws {
        for condition in [.permission, .noSpace, .notFound, .other] as [StorageError.Condition] {
            try await Self.run(.same) { subject in
                subject.disk.fail(Self.rename, condition)
                let error = #expect(throws: StorageError.self) {
                    try subject.disk.renameExclusively(subject.paths.part, to: subject.paths.destination)
                }
                #expect(error?.condition == condition && subject.disk.take() == [Self.rename])
            }
        }
    }
}
