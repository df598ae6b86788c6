import Foundation
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// What a download finds at its destination.
@Suite("A destination with an existing file")
struct DownloadJobSurveyTests {
    @Test("A finished file is found by its record, and its length is the progress")
    func existing() async throws {
        try await WatchedJob.run { disk, directory in
            try await WatchedJob.place(disk, directory)
            let job = try WatchedJob.job(disk, directory)
            guard case .existing(let file) = try await job.survey().survey else {
                Issue.record("nothing was found")
                return
            }
            #expect(file.length == 100 && file.record != nil)
            #expect(job.progress.bytesDone == 100 && job.progress.bytesTotal == 100)
            let record = try #require(file.record)
            let result = job.result(try file.judged(by: .confirmed(record)), duration: .zero)
            #expect(result.bytes == 100 && result.verifiedBy == .etag && result.wasAlreadyComplete)
        }
    }

    @Test(
        "A file to be replaced is replaced, unless a download of another URL of the group has put it there",
        arguments: [(isOfGroup: false, isOfURL: false), (true, true), (true, false)])
    func replaces(isOfGroup: Bool, isOfURL: Bool) async throws {
        try await WatchedJob.run { disk, directory in
            let placed = PlacedFiles()
            let other = try SourceURL("http://host/other.bin")
            try await WatchedJob.place(disk, directory, placed: isOfGroup ? placed : PlacedFiles()) { request in
                if !isOfURL { request.source = other }
            }
            let job = try WatchedJob.job(disk, directory, placed: placed)
            job.replaceExisting()
            let code = await failureCode { try await job.survey() }
            #expect(code == (isOfGroup && !isOfURL ? .exists : nil))
            guard code == nil else { return }
            _ = try await job.prepare(WatchedJob.preparation(), id: 8)
            try WatchedJob.fill(job, 0..<100)
            try await job.place(length: 100, evidence: .validator)
            job.close()
        }
    }

    /// Finds a file that another download of the run has put in place, and appends a byte if it is to have no record.
    private static func code(
        _ policy: DownloadOptions.ExistingFilePolicy, hasRecord: Bool = true, isInLaterRun: Bool = false,
        placing: (inout DownloadRequest) -> Void, _ change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws -> DownloadError.Code? {
        var code: DownloadError.Code?
        try await WatchedJob.run { disk, directory in
            let placed = PlacedFiles()
            try await WatchedJob.place(disk, directory, placed: placed, placing)
            if !hasRecord {
                let file = try #require(FileHandle(forUpdatingAtPath: directory + "/file.bin"))
                try file.seekToEnd()
                try file.write(contentsOf: [7])
                try file.close()
            }
            if isInLaterRun { placed.beginRun() }
            let job = try WatchedJob.job(disk, directory, placed: placed) { request in
                request.ifExists = policy
                change(&request)
            }
            code = await failureCode { try await job.survey() }
            job.close()
        }
        return code
    }

    @Test(
        "A file of another download of the run is neither replaced nor taken for this one's, unless that is proven",
        arguments: DownloadOptions.ExistingFilePolicy.allCases, [true, false])
    func ofOtherDownload(policy: DownloadOptions.ExistingFilePolicy, hasRecord: Bool) async throws {
        let isRefused =
            switch policy {
            case .overwrite, .skip: true
            case .update, .newer: !hasRecord
            // The state machine compares, refuses, or another name is chosen.
            case .verify, .rename, .fail: false
            }
        let other = try SourceURL("http://host/other.bin")
        let url = try await Self.code(policy, hasRecord: hasRecord) { $0.source = other }
        #expect((url == .exists) == isRefused)
        // The same URL, and another part of it.
        let part = try await Self.code(policy, hasRecord: hasRecord) { $0.part = .init(first: 0, last: 99) }
        #expect((part == .exists) == isRefused)
        #expect(try await Self.code(policy, hasRecord: hasRecord) { _ in } == nil)
        // What is in place before the run begins is an existing file like any other.
        let later = try await Self.code(policy, hasRecord: hasRecord, isInLaterRun: true) {
            $0.part = .init(first: 0, last: 99)
        }
        #expect(later == nil)
    }

    @Test("A file of another download of the run that has the given digest is the requested file")
    func ofOtherDownloadWithDigest() async throws {
        var crc = CRC32()
        WatchedPart.bytes(0..<100).withUnsafeBytes { crc.update($0) }
        let digest = try #require(ExpectedDigest("crc32=\(crc.hex)"))
        let other = try SourceURL("http://host/other.bin")
        let code = try await Self.code(.skip, placing: { $0.source = other }, { $0.digests = [digest] })
        #expect(code == nil)
    }

    @Test("A file that another download is putting in place counts from its first moment on")
    func beingPlaced() async throws {
        try await WatchedJob.run { disk, directory in
            let placed = PlacedFiles()
            let other = RequestedContent(DownloadRequest(try SourceURL("http://host/b")), [:])
            let path = directory + "/file.bin"
            let job = try WatchedJob.job(disk, directory, placed: placed) { $0.ifExists = .overwrite }
            _ = try await job.survey()
            _ = try await job.prepare(WatchedJob.preparation(), id: 7)
            try WatchedJob.fill(job, 0..<100)
            try Data([1, 2, 3]).write(to: URL(fileURLWithPath: path))
            placed.beginPlacing(other, at: path)
            #expect(await failureCode { try await job.place(length: 100, evidence: .validator) } == .exists)
            #expect(try WatchedJob.contents(path) == [1, 2, 3])
            let skipping = try WatchedJob.job(disk, directory, placed: placed) { $0.ifExists = .skip }
            #expect(await failureCode { try await skipping.survey() } == .exists)
            placed.endPlacing(other, at: path, nil)
            #expect(await failureCode { try await skipping.survey() } == nil)
            try await job.place(length: 100, evidence: .validator)
            job.close()
        }
    }

    @Test("What a crash after the last step left is cleared away once the file's name is durable")
    func clearsAway() async throws {
        try await WatchedJob.run { disk, directory in
            try await WatchedJob.place(disk, directory)
            let path = directory + "/file.bin"
            try Data("SEGDLMAN".utf8).write(to: URL(fileURLWithPath: path + ".segdl"))
            let job = try WatchedJob.job(disk, directory)
            _ = try await job.survey()
            #expect(disk.take() == ["sync names", "remove file.bin.segdl"])
        }
    }

    @Test("A part that is a second name of the finished file is removed")
    func secondName() async throws {
        try await WatchedJob.run { disk, directory in
            try await WatchedJob.place(disk, directory)
            let path = directory + "/file.bin"
            try FileManager.default.linkItem(atPath: path, toPath: path + ".segdl-part")
            let job = try WatchedJob.job(disk, directory)
            _ = try await job.survey()
            #expect(disk.take().first == "remove file.bin.segdl-part")
            // Another file of that name is a part.
            try Data("part".utf8).write(to: URL(fileURLWithPath: path + ".segdl-part"))
            _ = try await job.survey()
            #expect(FileManager.default.fileExists(atPath: path + ".segdl-part"))
        }
    }

    @Test("A part that is skipped for the next free name is not kept open, nor its lock")
    func skipsPart() async throws {
        try await WatchedJob.run { disk, directory in
            try await WatchedJob.interrupt(disk, directory)
            let job = try WatchedJob.job(disk, directory) { $0.ifExists = .rename }
            let (paths, finding) = try await job.surveyChosen(from: job.firstPaths, passesPartials: true)
            #expect(paths.name == "file.1.bin" && finding.part == nil)
            #expect(disk.openNames.isEmpty)
        }
    }
    /// The name at which a request with the policy to rename finds a part, or at which it begins, after a download of
    /// `http://host/file.bin` was interrupted.
    private static func name(
        afterInterrupting interrupted: (inout DownloadRequest) -> Void = { _ in },
        _ change: (inout DownloadRequest) -> Void
    ) async throws -> (name: String, resumes: Bool) {
        var result = (name: "", resumes: false)
        try await WatchedJob.run { disk, directory in
            try await WatchedJob.interrupt(disk, directory, interrupted)
            let job = try WatchedJob.job(disk, directory) { request in
                request.ifExists = .rename
                change(&request)
            }
            let finding = try await job.survey()
            result = (job.paths.name, finding.part != nil)
            job.close()
            #expect(FileManager.default.fileExists(atPath: directory + "/file.bin.segdl-part"))
        }
        return result
    }

    @Test("With the policy to rename, an interrupted download of another file stays, and the request's own is resumed")
    func renamesBesidePart() async throws {
        let other = try SourceURL("http://host/other/file.bin")
        let signed = try (1...2).map {
            try SourceURL("http://host/file.bin?a=b&X-Amz-Credential=c&X-Amz-Signature=\($0)")
        }
        let own = try SourceURL("http://host/file.bin")
        let digest = try #require(ExpectedDigest("crc32=01234567"))
        #expect(try await Self.name { _ in } == ("file.bin", true))
        let renewed = try await Self.name(afterInterrupting: { $0.source = signed[0] }) { $0.source = signed[1] }
        #expect(renewed == ("file.bin", true))
        #expect(try await Self.name { $0.source = other } == ("file.1.bin", false))
        #expect(try await Self.name { ($0.source, $0.mirrors) = (other, [own]) } == ("file.bin", true))
        #expect(try await Self.name { $0.part = .init(first: 0, last: 9) } == ("file.1.bin", false))
        #expect(try await Self.name { ($0.source, $0.continuation) = (other, .no) } == ("file.1.bin", false))
        // Such a request means the part that is there.
        #expect(try await Self.name { ($0.source, $0.continuation) = (other, .must) } == ("file.bin", true))
        #expect(try await Self.name { ($0.source, $0.resumesPart) = (other, true) } == ("file.bin", true))
        // Digests identify the file whatever its URL is.
        let pinned = try await Self.name(afterInterrupting: { $0.digests = [digest] }) {
            ($0.source, $0.digests) = (other, [digest])
        }
        #expect(pinned == ("file.bin", true))
        let unpinned = try await Self.name(afterInterrupting: { $0.digests = [digest] }) { $0.source = other }
        #expect(unpinned == ("file.1.bin", false))
    }

    @Test("A download beside the interrupted one of another file is resumed under its own name")
    func resumesBesidePart() async throws {
        try await WatchedJob.run { disk, directory in
            let other = try SourceURL("http://host/other/file.bin")
            let change: (inout DownloadRequest) -> Void = { ($0.source, $0.ifExists) = (other, .rename) }
            try await WatchedJob.interrupt(disk, directory)
            try await WatchedJob.interrupt(disk, directory, change)
            let job = try WatchedJob.job(disk, directory, change)
            guard case .partial(let saved) = try await job.survey().survey else {
                Issue.record("the part was overlooked")
                return
            }
            #expect(job.paths.name == "file.1.bin" && saved.missing == [50..<100])
            job.close()
        }
    }
}
