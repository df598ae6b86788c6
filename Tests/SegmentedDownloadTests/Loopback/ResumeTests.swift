import Origin
import SegmentedDownload
import Testing

/// Resuming partial downloads (FAULTS B, J9, J11, H14, H16).
@Suite struct ResumeTests {
    /// Every connection stalls after 600,000 bytes, so that the interruption does not depend on the machine's speed.
    static let stuck = "/8M/file.bin?stall-after=600000:all"
    static let whole = "/8M/file.bin?"
    static let half = 2.mebibytes

    @Test("An interrupted download is resumed, and no durable byte is fetched again")
    func goesOn() async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Self.stuck, after: Self.half)
            #expect(harness.exists(harness.part) && harness.exists(harness.manifest))
            let saved = try await SavedDownload(at: FilePath(harness.path))
            #expect(saved.bytesDone >= Self.half)
            harness.origin.log.reset()
            let result = await harness.fetch(Self.whole)
            #expect(result.code == nil, "\(result)")
            #expect(harness.bytesRequested(of: 8.mebibytes) == 8.mebibytes - saved.bytesDone)
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
            #expect(!harness.exists(harness.manifest))
        }
    }

    @Test("A download can be paused and resumed within one group, again and again")
    func pauseAndResume() async throws {
        try await Harness.run { harness in
            let request = try harness.request("/4M/file.bin?stall-after=200000:all")
            try await withDownloadClient { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    for round in Int64(1)...3 {
                        await download.reached(round << 19)
                        await download.pause()
                        #expect(download.state == .paused)
                        if round == 3 { try await harness.release("/4M/file.bin") }
                        download.resume()
                    }
                    #expect(try await download.result().bytes == 4.mebibytes)
                }
            }
            #expect(harness.contains(seed: 1, length: 4.mebibytes))
        }
    }

    @Test("A replaced file is detected on resume: versions are not mixed, and the part stays")
    func replacedFails() async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Self.stuck, after: Self.half)
            let before = try harness.bytes(harness.part)
            harness.origin.replace("/8M/file.bin", seed: 2, size: nil, etag: nil)
            #expect(await harness.fetch(Self.whole).code == .changed)
            #expect(try harness.bytes(harness.part) == before)
            #expect(harness.exists(harness.manifest) && !harness.exists(harness.path))
        }
    }

    @Test(
        "With onChange restart, a replaced file is downloaded from the start",
        arguments: ["", "&if-range=ignore", "&etag=none"])
    func replacedRestarts(behaviour: String) async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Self.stuck + behaviour, after: Self.half)
            harness.origin.replace("/8M/file.bin", seed: 2, size: nil, etag: nil)
            let result = await harness.fetch(Self.whole + behaviour) { $0.onChange = .restart }
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 2, length: 8.mebibytes))
        }
    }

    @Test("A file that changes during the download is never mixed")
    func changesOnTheWay() async throws {
        try await Harness.run { harness in
            let path = "/8M/file.bin?rate=2M&change-at=3000000:2"
            let failed = await harness.fetch(path)
            // Open connections may deliver the old version to its end: the result is one version or an error.
            if failed.code == nil {
                #expect(harness.contains(seed: 1, length: 8.mebibytes))
            } else {
                #expect(failed.code == .changed)
                #expect(!harness.exists(harness.path))
                let again = await harness.fetch(path) { $0.onChange = .restart }
                #expect(again.code == nil, "\(again)")
                #expect(harness.contains(seed: 2, length: 8.mebibytes))
            }
        }
    }

    @Test(
        "Without a validator the overlap is compared: the same file continues, another is detected",
        arguments: [UInt64(1), 2])
    func noValidator(seed: UInt64) async throws {
        try await Harness.run { harness in
            let path = "&etag=none&last-modified=none"
            try await harness.interrupt(Self.stuck + path, after: Self.half)
            if seed != 1 { harness.origin.replace("/8M/file.bin", seed: seed, size: nil, etag: nil) }
            let result = await harness.fetch(Self.whole + path)
            if seed == 1 {
                #expect(result.value?.verifiedBy == .comparison, "\(result)")
                #expect(harness.contains(seed: 1, length: 8.mebibytes))
            } else {
                #expect(result.code == .changed)
                #expect(!harness.exists(harness.path))
            }
        }
    }

    @Test(
        "A server that ignores If-Range or answers it wrongly is resumed by comparison",
        arguments: ["broken", "ignore"])
    func brokenIfRange(kind: String) async throws {
        try await Harness.run { harness in
            let path = "&if-range=\(kind)"
            try await harness.interrupt(Self.stuck + path, after: Self.half)
            harness.origin.log.reset()
            let result = await harness.fetch(Self.whole + path)
            #expect(result.code == nil, "\(result)")
            #expect(harness.bytesRequested(of: 8.mebibytes) < 7.mebibytes)
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test("A server that no longer supports ranges is read from the start and compared", arguments: [UInt64(1), 2])
    func rangesGone(seed: UInt64) async throws {
        try await Harness.run { harness in
            let unproven = "&etag=none&last-modified=none"
            try await harness.interrupt(Self.stuck + unproven, after: Self.half)
            if seed != 1 { harness.origin.replace("/8M/file.bin", seed: seed, size: nil, etag: nil) }
            let result = await harness.fetch("/8M/file.bin?ranges=no\(unproven)")
            if seed == 1 {
                #expect(result.code == nil, "\(result)")
                #expect(harness.contains(seed: 1, length: 8.mebibytes))
            } else {
                #expect(result.code == .changed, "\(result)")
            }
        }
    }

    @Test("must fails where there is nothing, no begins anew")
    func continuation() async throws {
        try await Harness.run { harness in
            let nothing = await harness.fetch("/1M/file.bin") { $0.continuation = .must }
            #expect(nothing.code == .state)
            try await harness.interrupt(Self.stuck, after: Self.half)
            let result = await harness.fetch("/8M/file.bin") { $0.continuation = .no }
            #expect(result.value.map { $0.bytesFetched >= 8.mebibytes } == true)
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    /// Ways to damage a manifest, by name.
    static let damages = [
        "zeroed", "empty", "missing", "halved", "tail zeroed", "header flipped", "record flipped", "foreign",
        "garbage behind", "one byte short",
    ]

    @Test(
        "A manifest of a later version is left unchanged, and so is its part",
        arguments: [DownloadOptions.Continuation.auto, .no])
    func laterManifest(continuation: DownloadOptions.Continuation) async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Self.stuck, after: Self.half)
            var bytes = try harness.bytes(harness.manifest)
            bytes[8] = 99
            try harness.write(bytes, to: harness.manifest)
            let part = try harness.bytes(harness.part)
            let result = await harness.fetch("/8M/file.bin") { $0.continuation = continuation }
            #expect(result.code == .state, "\(result)")
            let isSame = try harness.bytes(harness.manifest) == bytes && harness.bytes(harness.part) == part
            #expect(isSame && !harness.exists(harness.path))
        }
    }

    @Test("No damaged manifest leads to a wrong file, nor to an error", arguments: damages)
    func damagedManifest(damage: String) async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Self.stuck, after: Self.half)
            var bytes = try harness.bytes(harness.manifest)
            switch damage {
            case "zeroed": bytes = [UInt8](repeating: 0, count: bytes.count)
            case "empty": bytes = []
            case "halved": bytes = Array(bytes.prefix(bytes.count / 2))
            case "tail zeroed": bytes.replaceSubrange((bytes.count - 48)..., with: [UInt8](repeating: 0, count: 48))
            case "header flipped": bytes[40] ^= 0x10
            case "record flipped": bytes[bytes.count - 40] ^= 0x01
            case "foreign": bytes = Array("{\"url\": \"http://example.org\"}".utf8)
            case "garbage behind": bytes += [UInt8](repeating: 0xA5, count: 100)
            case "one byte short": bytes.removeLast()
            default: break
            }
            if damage == "missing" {
                try harness.remove(harness.manifest)
            } else {
                try harness.write(bytes, to: harness.manifest)
            }
            let result = await harness.fetch("/8M/file.bin")
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
            #expect(!harness.exists(harness.manifest) && !harness.exists(harness.part))
        }
    }

    @Test(
        "A part file cut, grown, swapped or deleted between runs is detected",
        arguments: ["cut", "grown", "swapped", "deleted"])
    func damagedPart(damage: String) async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Self.stuck, after: Self.half)
            var bytes = try harness.bytes(harness.part)
            switch damage {
            case "cut": bytes.removeLast(6 << 20)
            case "grown": bytes += [UInt8](repeating: 7, count: 4096)
            default: bytes = [UInt8](repeating: 7, count: bytes.count)
            }
            try harness.remove(harness.part)
            if damage != "deleted" { try harness.write(bytes, to: harness.part) }
            let result = await harness.fetch("/8M/file.bin")
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test("Cancelling deletes or keeps the fetched bytes, as requested", arguments: [true, false])
    func cancel(keeping: Bool) async throws {
        try await Harness.run { harness in
            let request = try harness.request(Self.stuck)
            try await withDownloadClient { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    for await event in download.events {
                        if case .progress(let progress) = event, progress.bytesDone > 1 << 20 {
                            await download.cancel(keepingPartial: keeping)
                        }
                    }
                    #expect(download.state == .cancelled)
                }
            }
            #expect(harness.exists(harness.part) == keeping)
            #expect(harness.exists(harness.manifest) == keeping)
            if keeping {
                let saved = try await SavedDownload(at: FilePath(harness.path))
                #expect(saved.bytesDone > 1 << 20)
                harness.origin.log.reset()
                let result = await harness.fetch(Self.whole)
                #expect(result.code == nil, "\(result)")
                #expect(harness.bytesRequested(of: 8.mebibytes) == 8.mebibytes - saved.bytesDone)
            }
        }
    }
}
