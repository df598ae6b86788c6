import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// What one download does on disk, without a network.
@Suite("A download's steps on disk")
struct DownloadJobTests {
    private static let finalName = "file.bin"

    /// Runs `body` with a directory on a watched disk.
    ///
    /// - Parameter closesAll: whether every file is closed afterwards, and none is left to its last reference.
    private static func run(
        closesAll: Bool = true, _ body: (WatchedStorage, String) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let disk = WatchedStorage()
            try await body(disk, directory)
            #expect(disk.openNames.isEmpty || !closesAll)
        }
    }

    private static func job(
        _ disk: WatchedStorage, _ directory: String, placed: PlacedFiles = PlacedFiles(),
        _ change: (inout DownloadRequest) -> Void = { _ in }
    ) throws -> DownloadJob {
        var request = DownloadRequest(
            try SourceURL("http://host/file.bin"), to: .file(directory + "/" + Self.finalName))
        change(&request)
        return DownloadJob(id: DownloadID(0), request: request, followers: [], storage: disk, placed: placed)
    }

    private static func preparation(
        _ mode: Preparation.Mode = .fresh, length: Int64 = 100, tag: String = "\"a\"", name: String? = nil,
        setsAside: Bool = false
    ) -> Preparation {
        var preparation = Preparation(
            resource: WatchedPart.resource(length, tag: tag), mode: mode, replaces: false, suggestedName: name)
        preparation.setsAside = setsAside
        return preparation
    }

    /// Writes and claims ranges of a job's part.
    private static func fill(_ job: DownloadJob, _ ranges: Range<Int64>...) throws {
        let part = try #require(job.part)
        for range in ranges {
            let result: Result<Void, StorageError> = WatchedPart.bytes(range).withUnsafeBytes { buffer in
                do throws(StorageError) {
                    return .success(try part.write(buffer, at: range.lowerBound))
                } catch {
                    return .failure(error)
                }
            }
            try result.get()
            try part.claim(WatchedPart.claim(range))
        }
    }

    /// Leaves an interrupted download with `0..<50` of 100 bytes.
    private static func interrupt(
        _ disk: WatchedStorage, _ directory: String, _ change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws {
        let job = try Self.job(disk, directory, change)
        _ = try await job.survey()
        _ = try await job.prepare(Self.preparation(), id: 7)
        try Self.fill(job, 0..<50)
        _ = try await job.part?.checkpoint(isPause: true)
        job.close()
        _ = disk.take()
    }

    private static func contents(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    // MARK: From beginning to end

    @Test("A file is surveyed, begun, fetched and placed, and the result says what it is")
    func whole() async throws {
        try await Self.run { disk, directory in
            let job = try Self.job(disk, directory)
            let finding = try await job.survey()
            #expect(finding.survey == .nothing && finding.part == nil && !finding.isUnlocked && job.hasName)
            let found = try await job.prepare(Self.preparation(), id: 7)
            #expect(found == nil && job.part?.header.id == 7)
            #expect(job.part?.header.sources == ["http://host/file.bin"])
            try Self.fill(job, 0..<100)
            job.count(requests: 2, bytesFetched: 110, connections: 3)
            job.count(requests: 1, bytesFetched: 5, connections: 2)
            job.beginPlacing()
            try await job.place(length: 100, isCompared: false)
            #expect(try Self.contents(directory + "/file.bin") == WatchedPart.bytes(0..<100))
            let result = job.result(duration: .seconds(1), wasAlreadyComplete: false)
            #expect(result.path == directory + "/file.bin" && result.bytes == 100 && result.bytesFetched == 115)
            #expect(result.requests == 3 && result.connectionsPeak == 3 && result.verifiedBy == .etag)
            #expect(result.crc32 == CRC32(of: WatchedPart.bytes(0..<100)).hex && result.digests.isEmpty)
            #expect(job.finishedLength == 100)
            job.close()
        }
    }

    @Test("What proves the file is said: digests before comparisons before validators")
    func verification() async throws {
        let digest = try #require(ExpectedDigest(.crc32, hex: CRC32(of: WatchedPart.bytes(0..<100)).hex))
        for (digests, isCompared, tag, verification) in [
            ([digest], true, "\"a\"", .digest), ([], true, "\"a\"", .comparison), ([], false, "\"a\"", .etag),
            ([], false, "W/\"a\"", .none),
        ] as [([ExpectedDigest], Bool, String, DownloadResult.Verification)] {
            try await Self.run { disk, directory in
                let job = try Self.job(disk, directory) { $0.digests = digests }
                _ = try await job.survey()
                _ = try await job.prepare(Self.preparation(tag: tag), id: 7)
                try Self.fill(job, 0..<100)
                try await job.place(length: 100, isCompared: isCompared)
                #expect(job.result(duration: .zero, wasAlreadyComplete: false).verifiedBy == verification)
                job.close()
            }
        }
    }

    @Test("Nothing vouches for a body that ended with its connection")
    func endsWithConnection() async throws {
        try await Self.run { disk, directory in
            let job = try Self.job(disk, directory)
            _ = try await job.survey()
            var resource = WatchedPart.resource(100)
            resource.endsWithConnection = true
            _ = try await job.prepare(
                Preparation(resource: resource, mode: .fresh, replaces: false, suggestedName: nil), id: 7)
            try Self.fill(job, 0..<100)
            try await job.place(length: 100, isCompared: false)
            #expect(job.result(duration: .zero, wasAlreadyComplete: false).verifiedBy == .none)
            job.close()
        }
    }

    @Test("A part is created for its owner alone to write to")
    func protected() async throws {
        try await Self.run { disk, directory in
            // As with a mask that takes nothing from others.
            let path = directory + "/file.bin.segdl-part"
            disk.before("lock file.bin.segdl-part") {
                try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path)
            }
            let job = try Self.job(disk, directory)
            _ = try await job.survey()
            _ = try await job.prepare(Self.preparation(), id: 7)
            #expect(try #require(job.part).file.status().ownership.permissions & Ownership.foreignWrite == 0)
            job.close()
        }
    }

    // MARK: Space

    @Test("A file that does not fit is not begun, and leaves nothing; what its part holds already counts")
    func space() async throws {
        for (free, isEnough) in [(99, false), (100, true)] as [(Int64, Bool)] {
            try await Self.run { disk, directory in
                disk.setFreeSpace(free)
                let job = try Self.job(disk, directory)
                _ = try await job.survey()
                let code = await failureCode { try await job.prepare(Self.preparation(), id: 7) }
                #expect(code == (isEnough ? nil : .space))
                #expect(try disk.names(in: directory).contains("file.bin.segdl-part") == isEnough)
                job.close()
            }
        }
        try await Self.run { disk, directory in
            try await Self.interrupt(disk, directory)
            let job = try Self.job(disk, directory)
            _ = try await job.survey()
            let reserved = try #require(job.part).file.status().allocated
            disk.setFreeSpace(50)
            do {
                _ = try await job.prepare(Self.preparation(length: 51 + reserved), id: 8)
                Issue.record("a file was begun that does not fit")
            } catch let failure as Failure {
                #expect(failure.code == .space)
                #expect(failure.message.contains("needs \(51 + reserved) bytes, and \(50 + reserved) are free"))
            }
            #expect(
                await failureCode { try await job.prepare(Self.preparation(length: 50 + reserved), id: 8) } == nil)
            job.close()
        }
    }

    @Test("A disk of endless space has room for everything")
    func endlessSpace() async throws {
        try await Self.run { disk, directory in
            disk.setFreeSpace(.max)
            let job = try Self.job(disk, directory)
            _ = try await job.survey()
            #expect(await failureCode { try await job.prepare(Self.preparation(), id: 7) } == nil)
            job.close()
        }
    }

    // MARK: Continuing

    @Test("What an earlier run left is continued, or replaced by another file")
    func continued() async throws {
        for (mode, ranges) in [(.adopted, [0..<50]), (.adoptedUp(to: 49), []), (.fresh, [])]
            as [(Preparation.Mode, [Range<Int64>])]
        {
            try await Self.run { disk, directory in
                try await Self.interrupt(disk, directory)
                let job = try Self.job(disk, directory)
                let finding = try await job.survey()
                guard case .partial(let saved) = finding.survey else {
                    Issue.record("nothing was found")
                    return
                }
                #expect(saved.missing == [50..<100] && !saved.hasDigests && !saved.isPinned)
                _ = try await job.prepare(Self.preparation(mode), id: 8)
                #expect(job.part?.settledClaims.map(\.range) == ranges && job.part?.header.id == 8)
                job.close()
            }
        }
    }

    @Test("What was not found cannot be continued")
    func notFound() async throws {
        try await Self.run { disk, directory in
            let job = try Self.job(disk, directory)
            _ = try await job.survey()
            #expect(await failureCode { try await job.prepare(Self.preparation(.adopted), id: 7) } == .internal)
        }
    }

    @Test("A continued download has the digests and the label it was begun with, unless others are given")
    func inherits() async throws {
        let md5 = try #require(ExpectedDigest(.md5, hex: String(repeating: "1", count: 32)))
        let other = try #require(ExpectedDigest(.md5, hex: String(repeating: "2", count: 32)))
        for (digests, continuation, expected, isPinned) in [
            ([], .auto, [md5], true), ([other], .auto, [other], false), ([], .no, [], false),
        ] as [([ExpectedDigest], DownloadOptions.Continuation, [ExpectedDigest], Bool)] {
            try await Self.run { disk, directory in
                try await Self.interrupt(disk, directory) {
                    $0.digests = [md5]
                    $0.userInfo = ["key": "value"]
                }
                let job = try Self.job(disk, directory) {
                    $0.digests = digests
                    $0.continuation = continuation
                }
                guard case .partial(let saved) = try await job.survey().survey else {
                    Issue.record("nothing was found")
                    return
                }
                #expect(saved.hasDigests == !expected.isEmpty && saved.isPinned == isPinned)
                _ = try await job.prepare(Self.preparation(.adopted), id: 8)
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
            try await Self.run { disk, directory in
                try await Self.interrupt(disk, directory)
                let job = try Self.job(disk, directory)
                _ = try await job.survey()
                if isEmpty { try job.part?.forget(from: 0) }
                _ = try await job.prepare(Self.preparation(tag: "\"b\"", setsAside: isKept || isEmpty), id: 8)
                let names = try disk.names(in: directory)
                #expect(names.contains("file.bin.segdl-old.segdl-part") == isKept)
                // A crash at the end must find the manifest, by which it knows that something is to be deleted.
                #expect(isEmpty || names.contains("file.bin.segdl") == isKept)
                #expect(job.part?.claimedLength == 0)
                try Self.fill(job, 0..<100)
                try await job.place(length: 100, isCompared: false)
                #expect(try disk.names(in: directory).filter { $0 != "." && $0 != ".." } == ["file.bin"])
                job.close()
            }
        }
    }

    @Test("Where another part was set aside before, that one stays and this one is given up")
    func setsAsideOne() async throws {
        try await Self.run { disk, directory in
            try await Self.interrupt(disk, directory)
            let aside = DestinationPaths(path: directory + "/file.bin").setAside
            try Data("older".utf8).write(to: URL(fileURLWithPath: aside.part))
            let job = try Self.job(disk, directory)
            _ = try await job.survey()
            _ = try await job.prepare(Self.preparation(tag: "\"b\"", setsAside: true), id: 8)
            let older = try Self.contents(aside.part)
            #expect(older == Array("older".utf8) && job.part?.claimedLength == 0 && job.part?.header.id == 8)
            job.close()
        }
    }

    @Test("If the new part cannot be begun the old one comes back")
    func bringsBack() async throws {
        try await Self.run { disk, directory in
            try await Self.interrupt(disk, directory)
            let job = try Self.job(disk, directory)
            _ = try await job.survey()
            disk.setFreeSpace(10)
            let preparation = Self.preparation(tag: "\"b\"", setsAside: true)
            #expect(await failureCode { try await job.prepare(preparation, id: 8) } == .space)
            job.close()
            let again = try Self.job(disk, directory)
            guard case .partial(let saved) = try await again.survey().survey else {
                Issue.record("the old part is gone")
                return
            }
            #expect(saved.missing == [50..<100])
            again.close()
        }
    }

    // MARK: Existing files

    @Test("A finished file is found by its record, and its length is the progress")
    func existing() async throws {
        try await Self.run { disk, directory in
            try await Self.place(disk, directory)
            let job = try Self.job(disk, directory)
            guard case .existing(let file) = try await job.survey().survey else {
                Issue.record("nothing was found")
                return
            }
            #expect(file.length == 100 && file.record != nil)
            #expect(job.progress.bytesDone == 100 && job.progress.bytesTotal == 100)
            let result = job.result(duration: .zero, wasAlreadyComplete: true)
            #expect(result.bytes == 100 && result.verifiedBy == .etag && result.wasAlreadyComplete)
        }
    }

    /// Fetches and places the file.
    private static func place(
        _ disk: WatchedStorage, _ directory: String, placed: PlacedFiles = PlacedFiles(),
        _ change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws {
        let job = try Self.job(disk, directory, placed: placed, change)
        _ = try await job.survey()
        _ = try await job.prepare(Self.preparation(), id: 7)
        try Self.fill(job, 0..<100)
        try await job.place(length: 100, isCompared: false)
        job.close()
        _ = disk.take()
    }

    @Test("A file to be replaced is replaced, unless another download of the group has just put it there")
    func replaces() async throws {
        for isOfGroup in [false, true] {
            try await Self.run { disk, directory in
                let placed = PlacedFiles()
                try await Self.place(disk, directory, placed: isOfGroup ? placed : PlacedFiles())
                let job = try Self.job(disk, directory, placed: placed)
                job.replaceExisting()
                let code = await failureCode { try await job.survey() }
                #expect(code == (isOfGroup ? .exists : nil))
                guard !isOfGroup else { return }
                _ = try await job.prepare(Self.preparation(), id: 8)
                try Self.fill(job, 0..<100)
                try await job.place(length: 100, isCompared: false)
                job.close()
            }
        }
    }

    @Test("What a crash after the last step left is cleared away once the file's name is durable")
    func clearsAway() async throws {
        try await Self.run { disk, directory in
            try await Self.place(disk, directory)
            let path = directory + "/file.bin"
            try Data("SEGDLMAN".utf8).write(to: URL(fileURLWithPath: path + ".segdl"))
            let job = try Self.job(disk, directory)
            _ = try await job.survey()
            #expect(disk.take() == ["sync names", "remove file.bin.segdl"])
        }
    }

    @Test("A part that is a second name of the finished file is removed")
    func secondName() async throws {
        try await Self.run { disk, directory in
            try await Self.place(disk, directory)
            let path = directory + "/file.bin"
            try FileManager.default.linkItem(atPath: path, toPath: path + ".segdl-part")
            let job = try Self.job(disk, directory)
            _ = try await job.survey()
            #expect(disk.take().first == "remove file.bin.segdl-part")
            // Another file of that name is a part.
            try Data("part".utf8).write(to: URL(fileURLWithPath: path + ".segdl-part"))
            _ = try await job.survey()
            #expect(FileManager.default.fileExists(atPath: path + ".segdl-part"))
        }
    }

    @Test("What has come to the destination while a file was fetched is replaced only where that was asked for")
    func cameMeanwhile() async throws {
        for (policy, code) in [(.verify, .exists), (.fail, .exists), (.overwrite, nil)]
            as [(DownloadOptions.ExistingFilePolicy, Failure.Code?)]
        {
            try await Self.run { disk, directory in
                let job = try Self.job(disk, directory) { $0.ifExists = policy }
                _ = try await job.survey()
                _ = try await job.prepare(Self.preparation(), id: 7)
                try Self.fill(job, 0..<100)
                try Data("mine".utf8).write(to: URL(fileURLWithPath: directory + "/file.bin"))
                #expect(await failureCode { try await job.place(length: 100, isCompared: false) } == code)
                let bytes = try Self.contents(directory + "/file.bin")
                #expect(bytes == (code == nil ? WatchedPart.bytes(0..<100) : Array("mine".utf8)))
                job.close()
            }
        }
    }

    // MARK: Names

    @Test("Where files are renamed the first free name is taken, none that another process fetches for")
    func renames() async throws {
        try await Self.run { disk, directory in
            let change: (inout DownloadRequest) -> Void = { $0.ifExists = .rename }
            try Data().write(to: URL(fileURLWithPath: directory + "/file.bin"))
            try Data().write(to: URL(fileURLWithPath: directory + "/file.1.bin"))
            let holder = try disk.open(directory + "/file.2.bin.segdl-part", .create)
            #expect(try holder.tryLock() == .taken)
            try await Self.place(disk, directory, change)
            #expect(try disk.names(in: directory).contains("file.3.bin"))
            holder.close()
        }
    }

    @Test("In a directory the response may name the file, once")
    func suggested() async throws {
        try await Self.run { disk, directory in
            let job = try Self.job(disk, directory) { $0.destination = .directory(directory) }
            _ = try await job.survey()
            #expect(!job.hasName)
            let head = ResponseHead(
                status: 200,
                fields: [
                    .contentDisposition: "attachment; filename=other.iso", .contentType: "Text/HTML; charset=utf-8",
                ])
            let announced = AnnouncedDigests(head, of: .whole(WatchedPart.resource(100)))
            let name = job.learn(from: head, announcing: announced)
            #expect(name == "other.iso" && job.isUnexpectedPage)
            _ = try await job.prepare(Self.preparation(name: name), id: 7)
            #expect(job.path == directory + "/other.iso" && job.hasName)
            #expect(job.learn(from: head, announcing: announced) == nil)
            #expect(try disk.names(in: directory).contains("other.iso.segdl-part"))
            job.close()
        }
    }

    @Test("A name that the response suggests may have remains of its own: they are looked at first")
    func suggestedRemains() async throws {
        try await Self.run { disk, directory in
            try await Self.interrupt(disk, directory) { $0.destination = .file(directory + "/other.iso") }
            let job = try Self.job(disk, directory) { $0.destination = .directory(directory) }
            _ = try await job.survey()
            let finding = try await job.prepare(Self.preparation(name: "other.iso"), id: 8)
            guard case .partial? = finding?.survey else {
                Issue.record("the part was overlooked")
                return
            }
            #expect(job.path == directory + "/other.iso" && job.hasName)
            job.close()
        }
    }

    @Test("Remains of an earlier run settle the name before any response")
    func settledName() async throws {
        try await Self.run { disk, directory in
            try await Self.interrupt(disk, directory)
            let job = try Self.job(disk, directory) { $0.destination = .directory(directory) }
            _ = try await job.survey()
            #expect(job.hasName && job.path == directory + "/file.bin")
            job.close()
        }
    }

    @Test("A file for which no name is suggested keeps the URL's")
    func unnamed() async throws {
        try await Self.run { disk, directory in
            let job = try Self.job(disk, directory) { $0.destination = .directory(directory) }
            _ = try await job.survey()
            let head = ResponseHead(status: 200)
            let announced = AnnouncedDigests(head, of: .whole(WatchedPart.resource(100)))
            #expect(job.learn(from: head, announcing: announced) == "file.bin" && !job.isUnexpectedPage)
            _ = try await job.prepare(Self.preparation(), id: 7)
            #expect(job.hasName && job.path == directory + "/file.bin")
            job.close()
        }
    }

    // MARK: Giving up

    @Test("A download that is given up leaves nothing, surveyed or not", arguments: [false, true])
    func discarded(isSurveyed: Bool) async throws {
        try await Self.run(closesAll: false) { disk, directory in
            try await Self.interrupt(disk, directory)
            let job = try Self.job(disk, directory)
            if isSurveyed { _ = try await job.survey() }
            try job.discard()
            #expect(try disk.names(in: directory).allSatisfy { $0 == "." || $0 == ".." })
        }
    }

    @Test("A part that is not ours is not given up")
    func foreign() async throws {
        try await Self.run(closesAll: false) { disk, directory in
            try Data("mine".utf8).write(to: URL(fileURLWithPath: directory + "/file.bin.segdl-part"))
            let job = try Self.job(disk, directory)
            try job.discard()
            #expect(try disk.names(in: directory).contains("file.bin.segdl-part"))
        }
    }

    @Test("A revision is recorded by who defines the file now")
    func revised() async throws {
        try await Self.run { disk, directory in
            let mirror = try SourceURL("http://mirror/file.bin")
            let job = try Self.job(disk, directory) { $0.mirrors = [mirror] }
            _ = try await job.survey()
            _ = try await job.prepare(Self.preparation(length: 9 << 20), id: 7)
            try Self.fill(job, 0..<50, 50..<80)
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

    @Test("A digest that the server announces counts only where the user has none as trusted")
    func announced() async throws {
        for (userHas, count) in [(false, 1), (true, 1)] {
            try await Self.run { disk, directory in
                let sha256 = try #require(ExpectedDigest(.sha256, hex: String(repeating: "0", count: 64)))
                let job = try Self.job(disk, directory) { if userHas { $0.digests = [sha256] } }
                _ = try await job.survey()
                let head = ResponseHead(
                    status: 200,
                    fields: [.init("Repr-Digest")!: "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=:"])
                _ = job.learn(from: head, announcing: AnnouncedDigests(head, of: .whole(WatchedPart.resource(100))))
                _ = try await job.prepare(Self.preparation(), id: 7)
                #expect(job.part?.header.digests == (userHas ? [sha256.description] : []))
                let digests = job.result(duration: .zero, wasAlreadyComplete: false).digests
                #expect(digests.count == count && digests.contains(sha256) == userHas)
                job.close()
            }
        }
    }
}
