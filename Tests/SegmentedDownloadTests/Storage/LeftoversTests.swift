import Foundation
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// What is cleared away beside a finished file.
@Suite("What a crash left beside a finished file")
struct LeftoversTests {
    /// Runs `body` with a finished file and without a part.
    private static func run(_ body: (WatchedPart) async throws -> Void) async throws {
        try await WatchedPart.run { subject in
            subject.part.close()
            try FileManager.default.moveItem(atPath: subject.paths.part, toPath: subject.paths.destination)
            _ = subject.disk.take()
            try await body(subject)
        }
    }

    @Test("A part is removed only if it is a second name of the finished file", arguments: [false, true])
    func secondName(isSecond: Bool) async throws {
        try await Self.run { subject in
            if isSecond {
                try FileManager.default.linkItem(atPath: subject.paths.destination, toPath: subject.paths.part)
            } else {
                try subject.put("part", at: subject.paths.part)
            }
            try subject.disk.removeSecondName(subject.paths)
            #expect(subject.exists(subject.paths.part) == !isSecond && subject.exists(subject.paths.destination))
        }
    }

    @Test("Without a part or a finished file no name is a second one")
    func noSecondName() async throws {
        try await Self.run { subject in
            try subject.disk.removeSecondName(subject.paths)
            try FileManager.default.moveItem(atPath: subject.paths.destination, toPath: subject.paths.part)
            try subject.disk.removeSecondName(subject.paths)
            #expect(subject.disk.take().isEmpty && subject.exists(subject.paths.part))
        }
    }

    @Test("The file's name is made durable before its manifest is removed; a name without either is left alone")
    func completes() async throws {
        let remove = ["remove " + WatchedPart.manifestName]
        for (hasManifest, hasRecord, calls) in [
            (true, false, ["sync names"] + remove), (true, true, ["sync names"] + remove),
            (false, true, ["sync names"]), (false, false, []),
        ] as [(Bool, Bool, [String])] {
            try await Self.run { subject in
                if hasManifest { try subject.put("SEGDLMAN", at: subject.paths.manifest) }
                try await subject.disk.completePlacing(subject.paths, hasRecord: hasRecord)
                #expect(subject.disk.take() == calls)
            }
        }
    }

    @Test(
        "A manifest beside a part belongs to the part, also to one that is begun meanwhile", arguments: [false, true])
    func keepsManifest(isBegunMeanwhile: Bool) async throws {
        try await Self.run { subject in
            try subject.put("SEGDLMAN", at: subject.paths.manifest)
            let part = subject.paths.part
            if isBegunMeanwhile {
                subject.disk.before("sync names") { try Data().write(to: URL(fileURLWithPath: part)) }
            } else {
                try subject.put("part", at: part)
            }
            try await subject.disk.completePlacing(subject.paths, hasRecord: true)
            #expect(subject.disk.take() == (isBegunMeanwhile ? ["sync names"] : []))
            #expect(subject.exists(subject.paths.manifest))
        }
    }
}
