import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// Which name a download's file gets.
@Suite("The name of a download's file")
struct DownloadJobNamingTests {
    @Test("Where files are renamed the first free name is taken, none that another process fetches for")
    func renames() async throws {
        try await WatchedJob.run { disk, directory in
            let change: (inout DownloadRequest) -> Void = { $0.ifExists = .rename }
            try Data().write(to: URL(fileURLWithPath: directory + "/file.bin"))
            try Data().write(to: URL(fileURLWithPath: directory + "/file.1.bin"))
            let holder = try disk.open(directory + "/file.2.bin.segdl-part", .create)
            #expect(try holder.tryLock() == .taken)
            try await WatchedJob.place(disk, directory, change)
            #expect(try disk.names(in: directory).contains("file.3.bin"))
            holder.close()
        }
    }

    @Test("In a directory the response may name the file, once")
    func suggested() async throws {
        try await WatchedJob.run { disk, directory in
            let job = try WatchedJob.job(disk, directory) { $0.destination = .directory(directory) }
            _ = try await job.survey()
            #expect(!job.hasName)
            let head = ResponseHead(
                status: 200,
                fields: [
                    .contentDisposition: "attachment; filename=other.iso", .contentType: "Text/HTML; charset=utf-8",
                ])
            let name = job.record(from: head)
            #expect(name == "other.iso" && job.isUnexpectedPage)
            _ = try await job.prepare(WatchedJob.preparation(name: name), id: 7)
            #expect(job.path == directory + "/other.iso" && job.hasName)
            #expect(job.record(from: head) == nil)
            #expect(try disk.names(in: directory).contains("other.iso.segdl-part"))
            job.close()
        }
    }

    @Test("A name that the response suggests may have remains of its own: they are looked at first")
    func suggestedRemains() async throws {
        try await WatchedJob.run { disk, directory in
            try await WatchedJob.interrupt(disk, directory) { $0.destination = .file(directory + "/other.iso") }
            let job = try WatchedJob.job(disk, directory) { $0.destination = .directory(directory) }
            _ = try await job.survey()
            let finding = try await job.prepare(WatchedJob.preparation(name: "other.iso"), id: 8)
            guard case .partial? = finding?.survey else {
                Issue.record("the part was overlooked")
                return
            }
            #expect(job.path == directory + "/other.iso" && job.hasName)
            job.close()
        }
    }

    @Test("The digest of an earlier run applies to a part under the name that the response suggests")
    func suggestedDigest() async throws {
        try await WatchedJob.run { disk, directory in
            let digest = try #require(ExpectedDigest(.sha256, hex: String(repeating: "0", count: 64)))
            try await WatchedJob.interrupt(disk, directory) { request in
                request.destination = .file(directory + "/other.iso")
                request.digests = [digest]
            }
            let job = try WatchedJob.job(disk, directory) { $0.destination = .directory(directory) }
            _ = try await job.survey()
            #expect(!job.hasDigest)
            let finding = try await job.prepare(WatchedJob.preparation(name: "other.iso"), id: 8)
            guard case .partial(let saved)? = finding?.survey else {
                Issue.record("the part was overlooked")
                return
            }
            #expect(saved.hasDigests && job.hasDigest)
            job.close()
        }
    }

    @Test("Remains of an earlier run settle the name before any response")
    func settledName() async throws {
        try await WatchedJob.run { disk, directory in
            try await WatchedJob.interrupt(disk, directory)
            let job = try WatchedJob.job(disk, directory) { $0.destination = .directory(directory) }
            _ = try await job.survey()
            #expect(job.hasName && job.path == directory + "/file.bin")
            job.close()
        }
    }

    @Test("A file for which no name is suggested keeps the URL's")
    func unnamed() async throws {
        try await WatchedJob.run { disk, directory in
            let job = try WatchedJob.job(disk, directory) { $0.destination = .directory(directory) }
            _ = try await job.survey()
            let head = ResponseHead(status: 200)
            #expect(job.record(from: head) == "file.bin" && !job.isUnexpectedPage)
            _ = try await job.prepare(WatchedJob.preparation(), id: 7)
            #expect(job.hasName && job.path == directory + "/file.bin")
            job.close()
        }
    }
}
