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
            let result = job.result(duration: .zero, wasAlreadyComplete: true)
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
            try await job.place(length: 100, isCompared: false)
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
}
