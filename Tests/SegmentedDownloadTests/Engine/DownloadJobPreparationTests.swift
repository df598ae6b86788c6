import Foundation
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// What is done on disk before the first byte.
@Suite("Preparing a download's part")
struct DownloadJobPreparationTests {
    @Test("A part is created for its owner alone to write to")
    func protected() async throws {
        try await WatchedJob.run { disk, directory in
            // As with a mask that takes nothing from others.
            let path = directory + "/file.bin.segdl-part"
            disk.before("lock file.bin.segdl-part") {
                try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path)
            }
            let job = try WatchedJob.job(disk, directory)
            _ = try await job.survey()
            _ = try await job.prepare(WatchedJob.preparation(), id: 7)
            #expect(try #require(job.part).file.status().ownership.permissions & Ownership.foreignWrite == 0)
            job.close()
        }
    }

    @Test("With numbers, the next name is taken if another process finished the file after the survey")
    func finishedMeanwhile() async throws {
        try await WatchedJob.run { disk, directory in
            let job = try WatchedJob.job(disk, directory) { $0.ifExists = .rename }
            _ = try await job.survey()
            // The other process still has its manifest.
            for name in ["file.bin", "file.bin.segdl"] {
                try Data(ManifestCodec.magic).write(to: URL(filePath: "\(directory)/\(name)"))
            }
            _ = try await job.prepare(WatchedJob.preparation(), id: 7)
            let names = try disk.names(in: directory)
            #expect(names.filter { $0.hasSuffix("-part") } == ["file.1.bin.segdl-part"])
            #expect(names.contains("file.bin.segdl"))
            job.close()
        }
    }

    // MARK: Space

    @Test("A file that does not fit is not begun, and leaves nothing; what its part holds already counts")
    func space() async throws {
        for (free, isEnough) in [(99, false), (100, true)] as [(Int64, Bool)] {
            try await WatchedJob.run { disk, directory in
                disk.setFreeSpace(free)
                let job = try WatchedJob.job(disk, directory)
                _ = try await job.survey()
                let code = await failureCode { try await job.prepare(WatchedJob.preparation(), id: 7) }
                #expect(code == (isEnough ? nil : .space))
                #expect(try disk.names(in: directory).contains("file.bin.segdl-part") == isEnough)
                job.close()
            }
        }
        try await WatchedJob.run { disk, directory in
            try await WatchedJob.interrupt(disk, directory)
            let job = try WatchedJob.job(disk, directory)
            _ = try await job.survey()
            let reserved = try #require(job.part).file.status().allocated
            disk.setFreeSpace(50)
            do {
                _ = try await job.prepare(WatchedJob.preparation(length: 51 + reserved), id: 8)
                Issue.record("a file was begun that does not fit")
            } catch let failure as DownloadError {
                #expect(failure.code == .space)
                #expect(failure.message.contains("needs \(51 + reserved) bytes, and \(50 + reserved) are free"))
            }
            #expect(
                await failureCode { try await job.prepare(WatchedJob.preparation(length: 50 + reserved), id: 8) } == nil
            )
            job.close()
        }
    }

    @Test("A disk of endless space has room for everything")
    func endlessSpace() async throws {
        try await WatchedJob.run { disk, directory in
            disk.setFreeSpace(.max)
            let job = try WatchedJob.job(disk, directory)
            _ = try await job.survey()
            #expect(await failureCode { try await job.prepare(WatchedJob.preparation(), id: 7) } == nil)
            job.close()
        }
    }

    // MARK: Continuing

    @Test("What an earlier run left is continued, or replaced by another file")
    func continued() async throws {
        for (mode, ranges) in [(.adopted, [0..<50]), (.adoptedUp(to: 49), []), (.fresh, [])]
            as [(Preparation.Mode, [Range<Int64>])]
        {
            try await WatchedJob.run { disk, directory in
                try await WatchedJob.interrupt(disk, directory)
                let job = try WatchedJob.job(disk, directory)
                let finding = try await job.survey()
                guard case .partial(let saved) = finding.survey else {
                    Issue.record("nothing was found")
                    return
                }
                #expect(saved.missing == [50..<100] && !saved.hasDigests && !saved.isPinned)
                _ = try await job.prepare(WatchedJob.preparation(mode), id: 8)
                #expect(job.part?.settledClaims.map(\.range) == ranges && job.part?.header.id == 8)
                job.close()
            }
        }
    }

    @Test("What was not found cannot be continued")
    func notFound() async throws {
        try await WatchedJob.run { disk, directory in
            let job = try WatchedJob.job(disk, directory)
            _ = try await job.survey()
            #expect(await failureCode { try await job.prepare(WatchedJob.preparation(.adopted), id: 7) } == .internal)
        }
    }

    @Test("A continued download has the digests and the label it was begun with, unless others are given")
    func inherits() async throws {
        let md5 = try #require(ExpectedDigest(.md5, hex: String(repeating: "1", count: 32)))
        let other = try #require(ExpectedDigest(.md5, hex: String(repeating: "2", count: 32)))
        for (digests, continuation, expected, isPinned) in [
            ([], .auto, [md5], true), ([other], .auto, [other], false), ([], .no, [], false),
        ] as [([ExpectedDigest], DownloadOptions.Continuation, [ExpectedDigest], Bool)] {
            try await WatchedJob.run { disk, directory in
                try await WatchedJob.interrupt(disk, directory) {
                    $0.digests = [md5]
                    $0.userInfo = ["key": "value"]
                }
                let job = try WatchedJob.job(disk, directory) {
                    $0.digests = digests
                    $0.continuation = continuation
                }
                guard case .partial(let saved) = try await job.survey().survey else {
                    Issue.record("nothing was found")
                    return
                }
                #expect(saved.hasDigests == !expected.isEmpty && saved.isPinned == isPinned)
                _ = try await job.prepare(WatchedJob.preparation(.adopted), id: 8)
                #expect(job.part?.header.digests == expected.map(\.description))
                #expect(job.part?.header.label.userInfo == ["key": "value"])
                job.close()
            }
        }
    }

    // MARK: Setting aside

    @Test("A part of another file is set aside until this one is complete, if anything of it is there")
    func setsAside() async throws {
        for (isKept, isEmpty) in [(true, false), (false, false), (false, true)] {
            try await WatchedJob.run { disk, directory in
                try await WatchedJob.interrupt(disk, directory)
                let job = try WatchedJob.job(disk, directory)
                _ = try await job.survey()
                if isEmpty { try job.part?.forget(from: 0) }
                let log = EngineOffice.Log(job)
                job.notePart(differing: "byte 7 differs")
                _ = try await job.prepare(WatchedJob.preparation(tag: "\"b\"", setsAside: isKept || isEmpty), id: 8)
                let names = try disk.names(in: directory)
                #expect(names.contains("file.bin.segdl-old.segdl-part") == isKept)
                #expect(Self.notesKept(log) == (isKept ? ["byte 7 differs"] : []))
                // A crash at the end must find the manifest, by which it knows that something is to be deleted.
                #expect(isEmpty || names.contains("file.bin.segdl") == isKept)
                #expect(job.part?.claimedLength == 0)
                try WatchedJob.fill(job, 0..<100)
                try await job.place(length: 100, evidence: .validator)
                #expect(try disk.names(in: directory).filter { $0 != "." && $0 != ".." } == ["file.bin"])
                job.close()
            }
        }
    }

    /// The differences that were told of parts that are kept.
    private static func notesKept(_ log: EngineOffice.Log) -> [String] {
        log.take().compactMap { event in
            guard case .note(let text) = event, text.contains("it is kept until the new one is complete") else {
                return nil
            }
            return text.split(separator: "(").last?.split(separator: ")").first.map { String($0) }
        }
    }

    @Test("The parts of several URLs are all kept, until one of the files is complete")
    func setsAsideSeveral() async throws {
        try await WatchedJob.run { disk, directory in
            try await WatchedJob.interrupt(disk, directory)
            let paths = DestinationPaths(path: directory + "/file.bin")
            for (number, tag) in ["\"b\"", "\"c\""].enumerated() {
                let job = try WatchedJob.job(disk, directory)
                _ = try await job.survey()
                let id = UInt64(number + 8)
                _ = try await job.prepare(WatchedJob.preparation(tag: tag, setsAside: true), id: id)
                #expect(job.part?.claimedLength == 0 && job.part?.header.id == id)
                try WatchedJob.fill(job, 0..<50)
                _ = try await job.part?.checkpoint(isPause: true)
                job.close()
            }
            for (slot, tag) in [(1, "\"a\""), (2, "\"b\"")] {
                let manifest = try ManifestCodec.decode(WatchedJob.contents(paths.setAside(slot: slot).manifest))
                #expect(manifest.isSetAside && manifest.header.resource.validator.entityTag?.fieldValue == tag)
            }
            let job = try WatchedJob.job(disk, directory)
            _ = try await job.survey()
            _ = try await job.prepare(WatchedJob.preparation(.adopted, tag: "\"c\""), id: 10)
            try WatchedJob.fill(job, 50..<100)
            try await job.place(length: 100, evidence: .validator)
            #expect(try disk.names(in: directory).filter { $0 != "." && $0 != ".." } == ["file.bin"])
            job.close()
        }
    }

    @Test("A part that cannot be kept under another name fails the download, and nothing is touched")
    func notSetAside() async throws {
        for isTooLong in [false, true] {
            try await WatchedJob.run { disk, directory in
                try await WatchedJob.interrupt(disk, directory)
                let paths = DestinationPaths(path: directory + "/file.bin")
                for slot in 1...DestinationPaths.setAsideMax where !isTooLong {
                    try Data("older".utf8).write(to: URL(fileURLWithPath: paths.setAside(slot: slot).part))
                }
                if isTooLong { disk.fail("look at file.bin.segdl-old.segdl-part", .nameTooLong) }
                let (part, manifest) = (
                    try WatchedJob.contents(paths.part), try WatchedJob.contents(paths.manifest)
                )
                let job = try WatchedJob.job(disk, directory)
                _ = try await job.survey()
                let log = EngineOffice.Log(job)
                let preparation = WatchedJob.preparation(tag: "\"b\"", setsAside: true)
                #expect(await failureCode { try await job.prepare(preparation, id: 8) } == .changed)
                #expect(Self.notesKept(log).isEmpty && disk.take().isEmpty)
                job.close()
                #expect(try WatchedJob.contents(paths.part) == part)
                #expect(try WatchedJob.contents(paths.manifest) == manifest)
            }
        }
    }

    @Test("If the new part cannot be begun the old one comes back")
    func bringsBack() async throws {
        try await WatchedJob.run { disk, directory in
            try await WatchedJob.interrupt(disk, directory)
            let job = try WatchedJob.job(disk, directory)
            _ = try await job.survey()
            disk.setFreeSpace(10)
            let preparation = WatchedJob.preparation(tag: "\"b\"", setsAside: true)
            #expect(await failureCode { try await job.prepare(preparation, id: 8) } == .space)
            job.close()
            let again = try WatchedJob.job(disk, directory)
            guard case .partial(let saved) = try await again.survey().survey else {
                Issue.record("the old part is gone")
                return
            }
            #expect(saved.missing == [50..<100])
            again.close()
        }
    }
}
