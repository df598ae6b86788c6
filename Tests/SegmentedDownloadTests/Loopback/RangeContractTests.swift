import Origin
import SegmentedDownload
import Testing

/// Server faults in ranges and lengths; none leads to a corrupt file (FAULTS A, F).
@Suite struct RangeContractTests {
    @Test("A number of segments opens the same number of connections, and the file is right", arguments: [1, 2, 4, 8])
    func exactSegments(count: Int) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/16M/file.bin?rate=8M") { $0.segments = .exactly(count) }
            #expect(result.value?.connectionsPeak == count)
            #expect(result.value?.verifiedBy == .etag)
            #expect(harness.contains(seed: 1, length: 16.mebibytes))
            #expect(!harness.exists(harness.part) && !harness.exists(harness.manifest))
        }
    }

    @Test(
        "An origin that violates the range protocol is read in one stream",
        arguments: [
            "ranges=no", "ranges=advertised", "ranges=first-only", "ranges=shift:4096", "ranges=relabel:4096",
            "ranges=long:4096", "ranges=no-content-range", "ranges=multipart", "ranges=garbage", "ranges=star",
            "ranges=huge",
        ])
    func oneStream(behaviour: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/4M/file.bin?\(behaviour)")
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 4.mebibytes))
        }
    }

    @Test("A shorter range than requested is kept, and the rest is requested", arguments: [1, 4])
    func shortRanges(connections: Int) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/4M/file.bin?ranges=short:100000") {
                $0.segments = .exactly(connections)
            }
            #expect(result.code == nil)
            // When a connection takes over from another, a piece may be received twice.
            let fetched = result.value?.bytesFetched ?? 0
            #expect(connections == 1 ? fetched == 4.mebibytes : fetched >= 4.mebibytes, "\(fetched)")
            #expect(harness.contains(seed: 1, length: 4.mebibytes))
        }
    }

    @Test("If other answers state another complete length, the first response brings the file that it states")
    func differentTotals() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/8M/file.bin?ranges=total:9000000&rate=4M")
            #expect(result.value?.bytes == 8.mebibytes, "\(result)")
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test("A digest detects wrong bytes under correct labels, and the final name never appears")
    func mislabelledBytes() async throws {
        try await Harness.run { harness in
            let digest = ExpectedDigest(.sha256, hex: String(repeating: "0", count: 64))!
            let result = await harness.fetch("/4M/file.bin?ranges=mislabel:4096") { $0.digests = [digest] }
            #expect(result.code == .integrity)
            #expect(!harness.exists(harness.path))
        }
    }

    @Test("Files of every difficult length are complete", arguments: ["0", "1", "2", "1048575", "1048576", "1048577"])
    func awkwardLengths(length: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/\(length)/file.bin")
            #expect(result.value?.bytes == Int64(length)!)
            #expect(harness.contains(seed: 1, length: Int64(length)!))
        }
    }

    @Test("An empty file completes, with a 416 or a 200", arguments: ["", "?empty=200"])
    func emptyFile(query: String) async throws {
        try await Harness.run { harness in
            #expect(await harness.fetch("/0/file.bin\(query)").value?.bytes == 0)
            #expect(harness.contains(seed: 1, length: 0))
        }
    }

    @Test("A stream without a length ends where its framing ends", arguments: ["length=none", "length=chunked"])
    func unknownLength(behaviour: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/3M/file.bin?ranges=no&\(behaviour)")
            #expect(result.value?.bytes == 3.mebibytes, "\(result)")
            #expect(harness.contains(seed: 1, length: 3.mebibytes))
        }
    }

    @Test(
        "A truncated body is not reported as complete",
        arguments: ["length=chunked-cut:1000000", "length=wrong:1000"])
    func cutBodies(behaviour: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/3M/file.bin?ranges=no&\(behaviour)") { $0.retries = 1 }
            #expect(result.code == .network, "\(result)")
            #expect(!harness.exists(harness.path))
        }
    }

    @Test(
        "An invalid length is a protocol error",
        arguments: ["length=two", "length=negative", "length=huge"])
    func senselessLengths(behaviour: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/3M/file.bin?ranges=no&\(behaviour)") { $0.retries = 1 }
            #expect(result.code == .protocol, "\(result)")
            #expect(!harness.exists(harness.path))
        }
    }

    @Test(
        "A response that is not HTTP is a protocol error",
        arguments: ["garbage", "http09", "status-line=HTTP/1.1%20abc"])
    func noHTTP(behaviour: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/3M/file.bin?\(behaviour)") { $0.retries = 1 }
            #expect(result.code == .protocol, "\(result)")
            #expect(!harness.exists(harness.path))
        }
    }

    @Test("A head without bounds is refused", arguments: ["head-size=2000000", "head-fields=5000"])
    func hugeHeads(behaviour: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/1M/file.bin?\(behaviour)") { $0.retries = 1 }
            #expect(result.code == .protocol, "\(result)")
        }
    }

    @Test("A content coding that segdl did not request is stored as sent, and reported")
    func unaskedGzip() async throws {
        try await Harness.run { harness in
            let request = try harness.request("/4M/file.bin?encoding=gzip")
            try await withDownloadClient { client in
                try await client.withGroup { group in
                    let download = try group.add(request)
                    var notes: [String] = []
                    for await event in download.events {
                        if case .note(let text) = event { notes.append(text) }
                    }
                    #expect(notes.contains { $0.contains("gzip") })
                }
            }
            #expect(harness.contains(seed: 1, length: 4.mebibytes))
        }
    }

    @Test("After a 416 to every range segdl requests the whole file")
    func alwaysUnsatisfiable() async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/2M/file.bin?ranges=416")
            #expect(result.code == nil, "\(result)")
            #expect(harness.contains(seed: 1, length: 2.mebibytes))
        }
    }
}
