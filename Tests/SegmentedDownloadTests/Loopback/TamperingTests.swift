import Foundation
import Origin
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Changes by other programs to segdl's files, and the protection of foreign files.
@Suite struct TamperingTests {
    static let stuck = "/8M/file.bin?stall-after=600000:all"

    @Test("Bytes altered in a part between runs are detected and fetched again")
    func alteredWhilePaused() async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Self.stuck, after: 2.mebibytes)
            try harness.overwrite(harness.part, at: 1000, with: [1, 2, 3, 4, 5, 6, 7])
            let result = await harness.fetch("/8M/file.bin")
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test(
        "Bytes that changed between runs without a trace in the file's times are fetched again, with a digest or without",
        arguments: [false, true])
    func rotten(hasDigest: Bool) async throws {
        try await Harness.run { harness in
            let digest = ExpectedDigest(.sha256, hex: Self.sha256(24 << 20))
            let change = { (request: inout DownloadRequest) in
                request.segments = .exactly(3)
                if hasDigest { request.digests = [digest].compactMap { $0 } }
            }
            // The same URL in both runs, so that its ETag proves the part and no bytes are compared.
            try await harness.interrupt("/24M/file.bin?stall-after=4M:all", after: 9.mebibytes) {
                change(&$0)
                $0.stallTimeout = .seconds(3600)
            }
            var times = stat()
            #expect(stat(harness.part, &times) == 0)
            try harness.overwrite(harness.part, at: 1000, with: [1, 2, 3, 4, 5, 6, 7])
            _ = utimensat(AT_FDCWD, harness.part, [times.st_atim, times.st_mtim], 0)
            let result = await harness.fetch("/24M/file.bin", change)
            #expect(result.value?.verifiedBy == (hasDigest ? .digest : .etag), "\(result)")
            #expect(harness.contains(seed: 1, length: 24.mebibytes))
        }
    }

    private static func sha256(_ length: Int64) -> String {
        var digest = RunningDigest(.sha256)
        OriginContent(seed: 1).bytes(0..<length).withUnsafeBytes { digest.update($0) }
        return digest.hex
    }

    @Test("A part cut while it is written is detected at the end, and the missing bytes are fetched again")
    func cutWhileRunning() async throws {
        try await Harness.run { harness in
            // Bodies stop after 600,000 bytes, until the part is cut.
            let request = try harness.request("/8M/file.bin?stall-after=600000:all") {
                $0.segments = .exactly(4)
                $0.stallTimeout = .seconds(3600)
            }
            let (end, notes): (DownloadEvent?, [String]) = try await withDownloadClient { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    var isCut = false
                    var notes: [String] = []
                    for await event in download.events {
                        switch event {
                        case .progress(let progress) where progress.bytesDone > 2 << 20 && !isCut:
                            isCut = true
                            try harness.truncate(harness.part, to: 0)
                            try await harness.release("/8M/file.bin")
                        case .note(let text): notes.append(text)
                        default: if event.isTerminal { return (event, notes) }
                        }
                    }
                    return (nil, notes)
                }
            }
            guard case .completed = end else { throw DownloadError(.internal, "\(end.map { "\($0)" } ?? "nothing")") }
            #expect(notes.contains { $0.contains("fetched again") }, "\(notes)")
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test(
        "A part is kept if its URL leads to a login page later", arguments: ["", "&length=chunked", "&etag=none"],
        [DownloadOptions.ChangePolicy.fail, .restart])
    func loginPage(page: String, onChange: DownloadOptions.ChangePolicy) async throws {
        try await Harness.run { harness in
            let places = ["/8M/file.bin?stall-after=600000:all", "/1K/login?type=text/html&seed=2\(page)"].map {
                harness.origin.url($0).addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            }
            let resource = "/8M/asked/file.bin?" + places.map { "redirect=302:\($0)" }.joined(separator: "&")
            try await harness.interrupt(resource, after: 500_000) { $0.segments = .exactly(1) }
            let kept = try harness.bytes(harness.part)
            let result = await harness.fetch(resource) { $0.onChange = onChange }
            #expect(result.code == (onChange == .fail ? .changed : nil), "\(result)")
            if onChange == .fail {
                #expect(try harness.bytes(harness.part) == kept && harness.exists(harness.manifest))
                #expect(!harness.exists(harness.path))
            }
        }
    }

    @Test("A complete part is not accepted as another URL's file", arguments: ["", "&etag=none&last-modified=none"])
    func completePartOfAnotherFile(validators: String) async throws {
        try await Harness.run { harness in
            let wrong = try #require(ExpectedDigest(.sha256, hex: String(repeating: "0", count: 64)))
            let refused = await harness.fetch("/9M/one/file.bin?seed=1\(validators)") { $0.digests = [wrong] }
            #expect(refused.code == .integrity)
            #expect(harness.exists(harness.part) && harness.exists(harness.manifest))
            let other = await harness.fetch("/9M/two/file.bin?seed=2\(validators)")
            #expect(other.code == nil, "\(other)")
            #expect(harness.contains(seed: 2, length: 9.mebibytes))
        }
    }

    @Test("A digest of an earlier run applies to the runs that resume the download")
    func inheritedDigest() async throws {
        try await Harness.run { harness in
            let wrong = try #require(ExpectedDigest(.crc32, hex: "00000001"))
            let first = await harness.fetch("/9M/file.bin") { $0.digests = [wrong] }
            let second = await harness.fetch("/9M/file.bin")
            let third = await harness.fetch("/9M/file.bin") { $0.continuation = .no }
            #expect(first.code == .integrity && second.code == .integrity)
            #expect(third.code == nil, "\(third)")
        }
    }

    @Test("A user's file with the manifest's name is not touched")
    func foreignManifest() async throws {
        try await Harness.run { harness in
            let own = Array("my own notes".utf8)
            try harness.write(own, to: harness.manifest)
            #expect(await harness.fetch("/9M/file.bin").code == .exists)
            try harness.write([1], to: harness.path)
            #expect(await harness.fetch("/9M/file.bin").code == .exists)
            #expect(try harness.bytes(harness.manifest) == own)
        }
    }

    @Test(
        "A finished file whose part name survived a crash loses that name",
        arguments: [DownloadOptions.ExistingFilePolicy.verify, .overwrite])
    func secondName(policy: DownloadOptions.ExistingFilePolicy) async throws {
        try await Harness.run { harness in
            let first = await harness.fetch("/1M/file.bin")
            #expect(first.code == nil, "\(first)")
            try FileManager.default.linkItem(atPath: harness.path, toPath: harness.part)
            let again = await harness.fetch("/1M/file.bin") { $0.ifExists = policy }
            #expect(again.code == nil, "\(again)")
            #expect(!harness.exists(harness.part))
            #expect(harness.contains(seed: 1, length: 1.mebibytes))
        }
    }

    @Test("A transfer coding other than chunked fails the download", arguments: ["gzip, chunked", "gzip", "xchunked"])
    func transferCodings(coding: String) async throws {
        try await Harness.run { harness in
            let field = "Transfer-Encoding:\(coding)".replacingOccurrences(of: " ", with: "%20")
            let result = await harness.fetch("/1M/file.bin?field=\(field)") { $0.retries = 0 }
            #expect(result.code != nil, "\(result)")
            #expect(!harness.exists(harness.path))
        }
    }

    @Test("A stream longer than allowed is refused even without a stated length")
    func tooLongStream() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/3M/file.bin?ranges=no&length=chunked") { $0.lengthMaximum = 1 << 20 }
            #expect(result.code == .space, "\(result)")
            #expect(!harness.exists(harness.path))
        }
    }

    @Test("An origin that sends one byte per response is not polled without a pause")
    func trickle() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/20/file.bin?reset-after=4:all") { $0.segments = .exactly(1) }
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 20))
            #expect(harness.origin.log.snapshot().requests.count <= 6)
        }
    }
}

extension Harness {
    func overwrite(_ path: String, at offset: UInt64, with bytes: [UInt8]) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try handle.seek(toOffset: offset)
        try handle.write(contentsOf: Data(bytes))
        try handle.close()
    }

    func truncate(_ path: String, to length: UInt64) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try handle.truncate(atOffset: length)
        try handle.close()
    }
}
