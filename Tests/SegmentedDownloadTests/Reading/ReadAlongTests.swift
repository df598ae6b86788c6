import Foundation
import Origin
import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

#if canImport(Glibc)
    import Glibc
#endif

/// Reading a file while it is fetched, for its digest or for a consumer.
@Suite("Reading along")
struct ReadAlongTests {
    private static let resource = "/24M/file.bin?rate=8M"
    /// No byte of its second half comes, so that it cannot complete before it is interrupted.
    private static let stuck = "/24M/file.bin?rate=8M&stall-at=12M"

    private static func sha256(_ length: Int64) -> ExpectedDigest? {
        var digest = RunningDigest(.sha256)
        OriginContent(seed: 1).bytes(0..<length).withUnsafeBytes { digest.update($0) }
        return ExpectedDigest(.sha256, hex: digest.hex)
    }

    private static func read(_ request: inout DownloadRequest) {
        request.digests = [sha256(24.mebibytes)].compactMap { $0 }
        request.segments = .exactly(3)
        request.windowLength = 4.mebibytes
    }

    /// The digest states in the part, as the next run finds them.
    private static func states(_ harness: Harness) throws -> [DigestState] {
        let bytes = try harness.bytes(harness.manifest)
        return try ManifestCodec.decode(bytes).digestStates
    }

    private static func found(_ harness: Harness) throws -> [DigestState]? {
        let finding = try Surveyor(storage: POSIXStorage()).survey(
            DestinationPaths(path: harness.path), policy: .verify)
        defer { finding.part?.close() }
        return finding.part?.digestStates
    }

    @Test("The state of a running digest is in the manifest, and the next run resumes from it")
    func resumed() async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Self.stuck, after: 9.mebibytes, Self.read)
            let states = try Self.states(harness)
            #expect(states.count == 1 && states.allSatisfy { $0.offset > 0 }, "\(states)")
            #expect(try Self.found(harness) == states)
            let result = await harness.fetch(Self.resource, Self.read)
            #expect(result.value?.verifiedBy == .digest, "\(result)")
            #expect(harness.contains(seed: 1, length: 24.mebibytes))
        }
    }

    @Test("If bytes before a digest's state are lost, the state is dropped, because other bytes may replace them")
    func lost() async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Self.stuck, after: 9.mebibytes, Self.read)
            let states = try Self.states(harness)
            try #require(states.contains { $0.offset > 1.mebibytes })
            try harness.overwrite(harness.part, at: 700_000, with: [1, 2, 3, 4, 5, 6, 7])
            #expect(try Self.found(harness) == [])
            // After the resume the digest is that of the bytes on disk.
            let result = await harness.fetch(Self.resource, Self.read)
            #expect(result.value?.verifiedBy == .digest, "\(result)")
            #expect(harness.contains(seed: 1, length: 24.mebibytes))
        }
    }

    @Test("Unexpected digests are reported, computed during the download or read from a short file")
    func computed() async throws {
        try await Harness.run { harness in
            for length in [1, 24] {
                let result = await harness.fetch("/\(length)M/\(length).bin") {
                    $0.destination = .file(harness.directory + "/\(length).bin")
                    $0.computedDigests = [.sha256, .crc32]
                }
                #expect(result.value?.digests == [Self.sha256(length.mebibytes)].compactMap { $0 }, "\(result)")
                #expect(result.value?.verifiedBy == .etag)
            }
        }
    }

    @Test("A download that waits for a blocked reader can be cancelled, and blocks no other download")
    func sleepers() async throws {
        try await Harness.run { harness in
            let pipes = (0..<6).map { _ in Pipe() }
            var configuration = DownloadConfiguration()
            configuration.limits.downloads = 10
            try await withDownloadClient(configuration) { client in
                try await client.withGroup { group in
                    var streams: [Download] = []
                    for (number, pipe) in pipes.enumerated() {
                        let url = harness.origin.url("/2M/\(number).bin")
                        let target = pipe.fileHandleForWriting.fileDescriptor
                        streams.append(try group.add(DownloadRequest(try SourceURL(url), to: .descriptor(target))))
                    }
                    // More streams than threads for reading, all with a full pipe.
                    for stream in streams {
                        while stream.state != .verifying { await Task.yield() }
                    }
                    var request = try harness.request("/24M/file.bin")
                    Self.read(&request)
                    let download = try group.add(request)
                    guard case .completed(let result) = try await download.rest() else {
                        Issue.record("the download did not complete")
                        return
                    }
                    #expect(result.verifiedBy == .digest)
                    for stream in streams { await stream.cancel(keepingPartial: false) }
                    #expect(streams.allSatisfy { $0.state == .cancelled })
                }
            }
            // The descriptors belong to the caller, and are still open.
            for pipe in pipes { #expect(fcntl(pipe.fileHandleForWriting.fileDescriptor, F_GETFD) != -1) }
        }
    }

    @Test("A task that is cancelled while its reader is blocked ends")
    func cancelledTask() async throws {
        try await Harness.run { harness in
            let pipe = Pipe()
            let request = DownloadRequest(
                try SourceURL(harness.origin.url("/2M/f.bin")),
                to: .descriptor(pipe.fileHandleForWriting.fileDescriptor))
            let task = Task {
                try await withDownloadClient { client in try await client.download(request) }
            }
            await harness.origin.log.waitForBytes(sent: 2 << 20)
            task.cancel()
            await #expect(throws: (any Error).self) { try await task.value }
        }
    }
}
