import Foundation
import HTTPTypes
import Synchronization
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// What one download does on disk, without a network.
@Suite("A download's steps on disk")
struct DownloadJobTests {
    @Test("A file is surveyed, begun, fetched and placed, and the result says what it is")
    func whole() async throws {
        try await WatchedJob.run { disk, directory in
            let job = try WatchedJob.job(disk, directory)
            let finding = try await job.survey()
            #expect(finding.survey == .nothing && finding.part == nil && !finding.isUnlocked && job.hasName)
            let found = try await job.prepare(WatchedJob.preparation(), id: 7)
            #expect(found == nil && job.part?.header.id == 7)
            #expect(job.part?.header.sources == ["http://host/file.bin"])
            try WatchedJob.fill(job, 0..<100)
            job.count(requests: 2, bytesFetched: 110, connections: 3)
            job.count(requests: 1, bytesFetched: 5, connections: 2)
            job.beginInterruptible()
            let file = try await job.place(length: 100, evidence: .validator)
            #expect(try WatchedJob.contents(directory + "/file.bin") == WatchedPart.bytes(0..<100))
            let result = job.result(file, duration: .seconds(1))
            #expect(result.path.string == directory + "/file.bin" && result.bytes == 100 && result.bytesFetched == 115)
            #expect(result.requests == 3 && result.connectionsPeak == 3 && result.verifiedBy == .etag)
            #expect(result.crc32 == CRC32(of: WatchedPart.bytes(0..<100)).hex && result.digests.isEmpty)
            job.close()
        }
    }

    @Test("What proves the file is said: digests before comparisons before validators")
    func verification() async throws {
        let digest = try #require(ExpectedDigest(.crc32, hex: CRC32(of: WatchedPart.bytes(0..<100)).hex))
        for (digests, evidence, tag, verification) in [
            ([digest], .comparison, "\"a\"", .digest), ([], .comparison, "\"a\"", .comparison),
            ([], .validator, "\"a\"", .etag), ([], .validator, "W/\"a\"", .none), ([], .none, "\"a\"", .none),
            ([digest], .none, "\"a\"", .digest),
        ] as [([ExpectedDigest], Evidence, String, DownloadResult.Verification)] {
            try await WatchedJob.run { disk, directory in
                let job = try WatchedJob.job(disk, directory) { $0.digests = digests }
                _ = try await job.survey()
                _ = try await job.prepare(WatchedJob.preparation(tag: tag), id: 7)
                try WatchedJob.fill(job, 0..<100)
                let file = try await job.place(length: 100, evidence: evidence)
                #expect(job.result(file, duration: .zero).verifiedBy == verification)
                job.close()
            }
        }
    }

    @Test("Nothing vouches for a body that ended with its connection")
    func endsWithConnection() async throws {
        try await WatchedJob.run { disk, directory in
            let job = try WatchedJob.job(disk, directory)
            _ = try await job.survey()
            var resource = WatchedPart.resource(100)
            resource.endsWithConnection = true
            _ = try await job.prepare(WatchedJob.preparation(of: resource), id: 7)
            try WatchedJob.fill(job, 0..<100)
            let file = try await job.place(length: 100, evidence: .validator)
            #expect(job.result(file, duration: .zero).verifiedBy == .none)
            job.close()
        }
    }

    @Test("What has come to the destination while a file was fetched is replaced only where that was asked for")
    func cameMeanwhile() async throws {
        for (policy, code) in [(.verify, .exists), (.fail, .exists), (.overwrite, nil)]
            as [(DownloadOptions.ExistingFilePolicy, DownloadError.Code?)]
        {
            try await WatchedJob.run { disk, directory in
                let job = try WatchedJob.job(disk, directory) { $0.ifExists = policy }
                _ = try await job.survey()
                _ = try await job.prepare(WatchedJob.preparation(), id: 7)
                try WatchedJob.fill(job, 0..<100)
                try Data("mine".utf8).write(to: URL(fileURLWithPath: directory + "/file.bin"))
                #expect(await failureCode { try await job.place(length: 100, evidence: .validator) } == code)
                let bytes = try WatchedJob.contents(directory + "/file.bin")
                #expect(bytes == (code == nil ? WatchedPart.bytes(0..<100) : Array("mine".utf8)))
                job.close()
            }
        }
    }

    @Test("A survey is interrupted while it reads a file or a part, and the part can be discarded all the same")
    func interrupted() async throws {
        try await WatchedJob.run { disk, directory in
            let first = try WatchedJob.job(disk, directory)
            _ = try await first.survey()
            _ = try await first.prepare(WatchedJob.preparation(), id: 7)
            try WatchedJob.fill(first, 0..<50)
            _ = try await first.part?.checkpoint(isPause: false)
            first.close()
            let second = try WatchedJob.job(disk, directory)
            second.beginInterruptible()
            second.interrupt()
            #expect(await failureCode { _ = try await second.survey() } == .cancelled)
            try second.discard()
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory) == [])

            try Data("mine".utf8).write(to: URL(fileURLWithPath: directory + "/file.bin"))
            let digest = try #require(ExpectedDigest("crc32=00000000"))
            let third = try WatchedJob.job(disk, directory) { $0.digests = [digest] }
            third.beginInterruptible()
            third.interrupt()
            #expect(await failureCode { _ = try await third.survey() } == .cancelled)
            // The next survey is not interrupted.
            third.beginInterruptible()
            #expect(await failureCode { _ = try await third.survey() } == nil)
        }
    }

    @Test("A digest that the server announces counts only where the user has none as trusted")
    func announced() async throws {
        for (userHas, count) in [(false, 1), (true, 1)] {
            try await WatchedJob.run { disk, directory in
                let sha256 = try #require(ExpectedDigest(.sha256, hex: String(repeating: "0", count: 64)))
                let job = try WatchedJob.job(disk, directory) { if userHas { $0.digests = [sha256] } }
                _ = try await job.survey()
                let announced = try #require(ExpectedDigest("sha256=\(String(repeating: "0", count: 63))1"))
                _ = try await job.prepare(WatchedJob.preparation(), id: 7)
                try job.note(stated: [announced])
                try job.note(stated: [announced])
                let header = try #require(job.part?.header)
                #expect(
                    header.digests == (userHas ? [sha256.description] : []) && header.resource.digests == [announced])
                let digests = job.shared.withLock { $0.digests.all }
                #expect(digests.count == count && digests.contains(sha256) == userHas)
                job.close()
            }
        }
    }

    @Test("A revision is recorded by who defines the file now")
    func revised() async throws {
        try await WatchedJob.run { disk, directory in
            let mirror = try SourceURL("http://mirror/file.bin")
            let job = try WatchedJob.job(disk, directory) { $0.mirrors = [mirror] }
            _ = try await job.survey()
            _ = try await job.prepare(WatchedJob.preparation(length: 9 << 20), id: 7)
            try WatchedJob.fill(job, 0..<50, 50..<80)
            let other = WatchedPart.resource(9 << 20, tag: "\"b\"")
            for (keepsRecord, sources) in [
                (true, ["http://host/file.bin", "http://mirror/file.bin"]),
                (false, ["http://host/file.bin", "*http://mirror/file.bin"]),
            ] {
                try await job.revise(
                    Revision(
                        withdrawn: [60..<70], reference: SourceID(1), resource: other, remarks: false,
                        keepsRecord: keepsRecord))
                #expect(job.part?.header.sources == sources)
            }
            #expect(job.part?.settledClaims.map(\.range) == [0..<50])
            #expect(job.part?.header.resource == other)
            job.close()
        }
    }

    // MARK: Giving up

    @Test("A download that is given up leaves nothing, surveyed or not", arguments: [false, true])
    func discarded(isSurveyed: Bool) async throws {
        try await WatchedJob.run(closesAll: false) { disk, directory in
            try await WatchedJob.interrupt(disk, directory)
            let job = try WatchedJob.job(disk, directory)
            if isSurveyed { _ = try await job.survey() }
            try job.discard()
            #expect(try disk.names(in: directory).allSatisfy { $0 == "." || $0 == ".." })
        }
    }

    @Test("A part that is not ours is not given up")
    func foreign() async throws {
        try await WatchedJob.run(closesAll: false) { disk, directory in
            try Data("mine".utf8).write(to: URL(fileURLWithPath: directory + "/file.bin.segdl-part"))
            let job = try WatchedJob.job(disk, directory)
            try job.discard()
            #expect(try disk.names(in: directory).contains("file.bin.segdl-part"))
            // What a kill left of a download that is known to have run.
            job.claimUnrecordedPart()
            try job.discard()
            #expect(try !disk.names(in: directory).contains("file.bin.segdl-part"))
            // And what a kill leaves after the part was renamed.
            try await WatchedJob.interrupt(disk, directory)
            try disk.remove(directory + "/file.bin.segdl-part")
            try job.discard()
            #expect(try !disk.names(in: directory).contains("file.bin.segdl"))
        }
    }
}
