import Foundation
import Origin
import SegmentedDownload
import TestSupport
import Testing

/// Destinations and their protection (FAULTS H, J).
@Suite struct DestinationTests {
    @Test("A finished file asked for again is recognized, and no body is fetched")
    func alreadyThere() async throws {
        try await Harness.run { harness in
            #expect(await harness.fetch("/4M/file.bin").code == nil)
            harness.origin.log.reset()
            let again = await harness.fetch("/4M/file.bin")
            #expect(again.value?.wasAlreadyComplete == true)
            #expect(harness.origin.log.snapshot().bytesSent == 0)
        }
    }

    @Test("A finished file that is outdated on the server is kept, and reported")
    func alreadyThereButOld() async throws {
        try await Harness.run { harness in
            #expect(await harness.fetch("/4M/file.bin").code == nil)
            harness.origin.replace("/4M/file.bin", seed: 2, size: nil, etag: nil)
            #expect(await harness.fetch("/4M/file.bin").code == .exists)
            #expect(harness.contains(seed: 1, length: 4.mebibytes))
            let outcome1 = await harness.fetch("/4M/file.bin") { $0.ifExists = .overwrite }
            #expect(outcome1.code == nil)
            #expect(harness.contains(seed: 2, length: 4.mebibytes))
        }
    }

    @Test("An altered finished file is not accepted as the remote one")
    func altered() async throws {
        try await Harness.run { harness in
            #expect(await harness.fetch("/1M/file.bin").code == nil)
            let handle = try FileHandle(forUpdating: URL(fileURLWithPath: harness.path))
            try handle.seek(toOffset: 5000)
            try handle.write(contentsOf: Data([1, 2, 3]))
            try handle.close()
            #expect(await harness.fetch("/1M/file.bin").code == .exists)
        }
    }

    @Test("update fetches nothing while the remote file is the same, and replaces the file once it is another")
    func update() async throws {
        try await Harness.run { harness in
            #expect(await harness.fetch("/4M/file.bin").code == nil)
            harness.origin.log.reset()
            let again = await harness.fetch("/4M/file.bin") { $0.ifExists = .update }
            #expect(again.value?.wasAlreadyComplete == true)
            #expect(harness.origin.log.snapshot().bytesSent == 0)
            harness.origin.replace("/4M/file.bin", seed: 2, size: nil, etag: nil)
            let changed = await harness.fetch("/4M/file.bin") { $0.ifExists = .update }
            #expect(changed.value?.wasAlreadyComplete == false)
            #expect(harness.contains(seed: 2, length: 4.mebibytes))
            #expect(!harness.exists(harness.part))
        }
    }

    @Test(
        "A finished file that was edited stays, unless the remote file is newer or for update has another length",
        arguments: [DownloadOptions.ExistingFilePolicy.update, .newer])
    func edited(policy: DownloadOptions.ExistingFilePolicy) async throws {
        try await Harness.run { harness in
            try await Self.edit(harness, added: 0, isLater: true, policy, stays: true)
            try await Self.edit(harness, added: 1, isLater: true, policy, stays: policy == .newer)
            try await Self.edit(harness, added: 0, isLater: false, policy, stays: false)
        }
    }

    /// Fetches a file, edits it, and fetches it again.
    private static func edit(
        _ harness: Harness, added count: Int, isLater: Bool, _ policy: DownloadOptions.ExistingFilePolicy, stays: Bool
    ) async throws {
        #expect(await harness.fetch("/1M/file.bin") { $0.ifExists = .overwrite }.code == nil)
        var bytes = try harness.bytes(harness.path)
        bytes[1000] ^= 1
        bytes += [UInt8](repeating: 7, count: count)
        try harness.write(bytes, to: harness.path)
        if !isLater {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_600_000_000)], ofItemAtPath: harness.path)
        }
        let result = await harness.fetch("/1M/file.bin") { $0.ifExists = policy }
        #expect(result.value?.wasAlreadyComplete == stays)
        let found = try harness.bytes(harness.path)
        #expect((found == bytes) == stays)
        #expect(stays || harness.contains(seed: 1, length: 1.mebibytes))
    }

    @Test(
        "A file that is not ours is never overwritten unasked",
        arguments: DownloadOptions.ExistingFilePolicy.allCases)
    func foreignFile(policy: DownloadOptions.ExistingFilePolicy) async throws {
        try await Harness.run { harness in
            try harness.write([1, 2, 3], to: harness.path)
            let result = await harness.fetch("/1M/file.bin") { $0.ifExists = policy }
            switch policy {
            case .verify, .fail: #expect(result.code == .exists)
            case .newer: #expect(result.value?.wasAlreadyComplete == true)
            case .skip:
                #expect(result.value?.wasAlreadyComplete == true)
                #expect(harness.origin.log.snapshot().requests.isEmpty)
            case .rename: #expect(result.value?.path.string == harness.directory + "/file.1.bin")
            case .overwrite, .update:
                #expect(result.value?.path.string == harness.path && harness.contains(seed: 1, length: 1.mebibytes))
                return
            }
            #expect(try harness.bytes(harness.path) == [1, 2, 3])
        }
    }

    @Test("A file that appears at the destination meanwhile is not replaced", arguments: [true, false])
    func appears(isAsked: Bool) async throws {
        try await Harness.run { harness in
            // It cannot complete before the file is there.
            let request = try harness.request("/4M/file.bin?stall-after=300000:all") {
                $0.ifExists = isAsked ? .overwrite : .verify
            }
            let end = try await harness.withGroup { group in
                let download = try group.add(request)
                for await event in download.events {
                    guard case .started = event else { continue }
                    try harness.write([1, 2, 3], to: harness.path)
                    try await harness.release("/4M/file.bin")
                }
                return try await download.rest()
            }
            guard !isAsked else {
                #expect(harness.contains(seed: 1, length: 4.mebibytes))
                return
            }
            guard case .failed(let error, _) = end else { throw DownloadError(.internal, "\(end)") }
            #expect(error.code == .exists)
            #expect(try harness.bytes(harness.path) == [1, 2, 3])
            #expect(harness.exists(harness.part), "the part is kept")
        }
    }

    @Test("A digest confirms an existing file")
    func digestProves() async throws {
        try await Harness.run { harness in
            let digest = try #require(
                ExpectedDigest("sha256=039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81"))
            try harness.write([1, 2, 3], to: harness.path)
            let result = await harness.fetch("/3/file.bin") { $0.digests = [digest] }
            #expect(result.value?.wasAlreadyComplete == true)
            #expect(harness.origin.log.snapshot().requests.isEmpty)
        }
    }

    @Test("Digests are checked, and the reported CRC-32 is the file's")
    func digests() async throws {
        try await Harness.run { harness in
            let first = await harness.fetch("/3M/file.bin")
            let crc = try #require(first.value?.crc32)
            try harness.remove(harness.path)
            let good = try #require(ExpectedDigest("crc32=\(crc)"))
            let outcome2 = await harness.fetch("/3M/file.bin") { $0.digests = [good] }
            #expect(outcome2.value?.verifiedBy == .digest)
            try harness.remove(harness.path)
            let bad = try #require(ExpectedDigest("crc32=00000001"))
            let outcome3 = await harness.fetch("/3M/file.bin") { $0.digests = [bad] }
            #expect(outcome3.code == .integrity)
            #expect(!harness.exists(harness.path) && harness.exists(harness.part))
        }
    }

    @Test(
        "A directory at the destination is not replaced",
        arguments: [DownloadOptions.ExistingFilePolicy.verify, .overwrite])
    func directory(policy: DownloadOptions.ExistingFilePolicy) async throws {
        try await Harness.run { harness in
            try FileManager.default.createDirectory(atPath: harness.path, withIntermediateDirectories: false)
            let outcome4 = await harness.fetch("/1M/file.bin") { $0.ifExists = policy }
            #expect(outcome4.code == .exists)
        }
    }

    @Test("A symbolic link at the part's or the manifest's path is not followed", arguments: [".segdl-part", ".segdl"])
    func symbolicLink(suffix: String) async throws {
        try await Harness.run { harness in
            let victim = harness.directory + "/victim"
            try harness.write([9, 9, 9], to: victim)
            try FileManager.default.createSymbolicLink(atPath: harness.path + suffix, withDestinationPath: victim)
            let result = await harness.fetch("/10M/file.bin")
            if suffix == ".segdl-part" {
                #expect(result.code == .exists)
            }
            #expect(try harness.bytes(victim) == [9, 9, 9])
        }
    }

    @Test("A name longer than the file system allows is reported before any request")
    func longName() async throws {
        try await Harness.run { harness in
            let name = String(repeating: "n", count: 300)
            let result = await harness.fetch("/1M/file.bin") {
                $0.destination = .file(harness.directory + "/" + name)
            }
            #expect(result.code == .file)
            #expect(harness.origin.log.snapshot().requests.isEmpty)
        }
    }

    @Test("Missing directories are created, or an error, as requested")
    func missingDirectory() async throws {
        try await Harness.run { harness in
            let path = harness.directory + "/a/b/file.bin"
            let refused = await harness.fetch("/1M/file.bin") {
                $0.destination = .file(path)
                $0.createsDirectories = false
            }
            #expect(refused.code == .file && "\(refused)".contains(harness.directory + "/a/b"), "\(refused)")
            #expect(harness.origin.log.snapshot().requests.isEmpty && !harness.exists(harness.directory + "/a"))
            let made = await harness.fetch("/1M/file.bin") { $0.destination = .file(path) }
            #expect(made.value?.path.string == path)
        }
    }

    @Test(
        "A directory without write permission is reported before any request",
        .enabled(if: getuid() != 0, "root can write everywhere"))
    func readOnlyDirectory() async throws {
        try await Harness.run { harness in
            try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: harness.directory)
            #expect(await harness.fetch("/1M/file.bin").code == .file)
            #expect(harness.origin.log.snapshot().requests.isEmpty)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: harness.directory)
        }
    }

    @Test("More than the disk holds is refused before the first byte, and nothing is left")
    func noSpace() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/4000T/file.bin?rate=1000")
            #expect(result.code == .space, "\(result)")
            #expect(!harness.exists(harness.part) && !harness.exists(harness.manifest))
        }
    }

    @Test("A file longer than allowed is refused")
    func tooLong() async throws {
        try await Harness.run { harness in
            let outcome5 = await harness.fetch("/2M/file.bin") { $0.lengthMaximum = 1 << 20 }
            #expect(outcome5.code == .space)
        }
    }

    @Test("Of two downloads to one destination the second fails and names the process of the first")
    func twoAtOnce() async throws {
        try await Harness.run { harness in
            // The first download holds the lock until it is cancelled.
            let request = try harness.request("/4M/file.bin?stall-after=100000:all") {
                $0.stallTimeout = .seconds(3600)
            }
            try await withDownloadClient { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    for await event in download.events {
                        guard case .started = event else { continue }
                        let second = await harness.fetch("/4M/file.bin")
                        #expect(second.code == .exists)
                        #expect("\(second)".contains("process \(getpid())"), "\(second)")
                        await download.cancel(keepingPartial: false)
                    }
                }
            }
        }
    }

    @Test("A part deleted while it is written is an error, not a missing file")
    func deletedOnTheWay() async throws {
        try await Harness.run { harness in
            // It cannot complete before the part is deleted.
            let request = try harness.request("/4M/file.bin?stall-after=300000:all")
            let code: DownloadError.Code? = try await withDownloadClient { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    for await event in download.events {
                        switch event {
                        case .started:
                            try harness.remove(harness.part)
                            try await harness.release("/4M/file.bin")
                        case .failed(let error, _): return error.code
                        default: continue
                        }
                    }
                    return nil
                }
            }
            #expect(code == .file)
            #expect(!harness.exists(harness.path))
        }
    }

    @Test(
        "The response names the file, safely",
        arguments: [
            ("", "file.bin"), ("?disposition=attachment;%20filename=%22report.pdf%22", "report.pdf"),
            ("?disposition=attachment;%20filename=%22../../evil.sh%22", "evil.sh"),
            ("?disposition=attachment;%20filename=%22.bashrc%22", "_.bashrc"),
            ("?disposition=attachment;%20filename*=UTF-8''na%25C3%25AFve.txt", "naïve.txt"),
        ])
    func naming(query: String, name: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/1M/file.bin\(query)") { $0.destination = .directory(harness.directory) }
            #expect(result.value?.path.string == harness.directory + "/" + name, "\(result)")
            let names = try FileManager.default.contentsOfDirectory(atPath: harness.directory)
            #expect(names == [name])
        }
    }

    @Test("A download named by the response is resumed by that name, and recognized when finished")
    func namedResume() async throws {
        try await Harness.run { harness in
            let resource = "/8M/file.bin?disposition=attachment;%20filename=other.bin"
            let toDirectory = { (request: inout DownloadRequest) in
                request.destination = .directory(harness.directory)
            }
            try await harness.interrupt(resource + "&stall-after=600000:all", after: 2.mebibytes, toDirectory)
            #expect(harness.exists(harness.directory + "/other.bin.segdl"))
            let result = await harness.fetch(resource, toDirectory)
            #expect(result.value.map { $0.bytesFetched < 8.mebibytes } == true, "\(result)")
            #expect(result.value?.path.string == harness.directory + "/other.bin")
            let again = await harness.fetch(resource, toDirectory)
            #expect(again.value?.wasAlreadyComplete == true, "\(again)")
        }
    }

    @Test("A download named by the response keeps its name through a pause, and leaves one file")
    func namedThroughPause() async throws {
        try await Harness.run { harness in
            let request = try harness.request("/8M/file.bin?rate=2M&disposition=attachment;%20filename=other.bin") {
                $0.destination = .directory(harness.directory)
            }
            let result = try await withDownloadClient { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    for await event in download.events {
                        if case .progress(let progress) = event, progress.bytesDone > 2 << 20 { break }
                    }
                    await download.pause()
                    download.resume()
                    return try await download.result()
                }
            }
            #expect(result.path.string == harness.directory + "/other.bin")
            #expect(result.bytesFetched < 9.mebibytes)
            let names = try FileManager.default.contentsOfDirectory(atPath: harness.directory)
            #expect(names == ["other.bin"])
        }
    }
}
