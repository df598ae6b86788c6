import HTTPTypes
import Origin
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// The memory held between network and disk.
@Suite struct MemoryTests {
    @Test(
        "Each allowed connection has an equal share of the memory, and there are no more connections than shares",
        arguments: [
            (memory: 16 << 20, connections: 64, allowed: 64, share: 256 << 10),
            (memory: 1 << 20, connections: 64, allowed: 8, share: 128 << 10),
            (memory: 1 << 20, connections: 1, allowed: 1, share: 1 << 20),
            (memory: 0, connections: 4, allowed: 1, share: 128 << 10),
        ])
    func shares(memory: Int, connections: Int, allowed: Int, share: Int) {
        var limits = DownloadLimits()
        limits.connections = connections
        #expect(limits.group.connections == connections && limits.receive == ReceiveLimits())
        limits.memory = Int64(memory)
        #expect(limits.group.connections == allowed && limits.receive.memory == share)
    }

    @Test("Of several groups with shared connections the strictest limit applies, while its group exists")
    func strictest() {
        let buffers = ReceiveBuffers()
        let (one, other) = (ReceiveBuffers(), ReceiveBuffers())
        #expect(buffers.lengthAllowed(isTLS: false) == 1 << 20)
        buffers.update(ReceiveLimits(memory: 1 << 20), for: ObjectIdentifier(one))
        buffers.update(ReceiveLimits(memory: 128 << 10), for: ObjectIdentifier(other))
        #expect(buffers.lengthAllowed(isTLS: false) == 64 << 10 && buffers.lengthAllowed(isTLS: true) == 16 << 10)
        buffers.update(nil, for: ObjectIdentifier(other))
        // Two pieces without TLS; with TLS three, each with a partial record before it.
        #expect(buffers.lengthAllowed(isTLS: false) == 512 << 10 && buffers.lengthAllowed(isTLS: true) == 256 << 10)
        buffers.update(ReceiveLimits(chunkLength: 100_000), for: ObjectIdentifier(other))
        #expect(buffers.lengthAllowed(isTLS: false) == 64 << 10)
        buffers.update(nil, for: ObjectIdentifier(one))
        buffers.update(nil, for: ObjectIdentifier(other))
        #expect(buffers.lengthAllowed(isTLS: true) == 1 << 20)
    }

    @Test(
        "A limit of memory shortens the reads of open connections, and removing it lengthens them",
        arguments: [false, true])
    func openConnections(isTLS: Bool) async throws {
        try await Harness.run(.init(tls: isTLS)) { harness in
            var configuration = AsyncHTTPClientTransport.Configuration()
            configuration.trust.verifiesCertificates = false
            let source = try SourceURL(harness.origin.url("/512M/file.bin"))
            try await AsyncHTTPClientTransport.withTransport(configuration) { transport in
                try await transport.withResponse(to: TransportRequest(url: source, fields: HTTPFields())) { _, body in
                    let owner = ObjectIdentifier(ReceiveBuffers.self)
                    let lengthMax = isTLS ? 16 << 10 : 64 << 10
                    // The network determines the length of pieces: a long one shows that the limit allows it.
                    try await Self.awaitPiece(longerThan: 2 * lengthMax, of: body)
                    transport.limit(ReceiveLimits(memory: 128 << 10), for: owner)
                    // One piece that is waiting already, and one that is being read.
                    for _ in 0..<2 { _ = try await body.next() }
                    for _ in 0..<100 {
                        let length = try await body.next()?.count ?? 0
                        #expect((1...(lengthMax + (isTLS ? 17 << 10 : 0))).contains(length))
                    }
                    transport.limit(nil, for: owner)
                    try await Self.awaitPiece(longerThan: 2 * lengthMax, of: body)
                }
            }
        }
    }

    private static func awaitPiece(longerThan length: Int, of body: any ResponseBody) async throws {
        while let piece = try await body.next() {
            if piece.count > length { return }
        }
        Issue.record("no piece was longer than \(length) bytes")
    }

    @Test("A limit of memory allows fewer connections, and takes effect while a file is fetched")
    func adjusted() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.limits.memory = 256 << 10
            try await harness.withGroup(configuration) { group in
                // Only heads arrive, so that no connection looks slow and is replaced.
                let download = try group.add(
                    harness.request("/8M/file.bin?stall-after=0:all") { $0.stallTimeout = .seconds(3600) })
                await harness.origin.log.waitForRequests(2)
                var connections: [Int] = []
                for await case .progress(let progress) in download.events {
                    connections.append(progress.connections)
                    if connections.count == 3 { break }
                }
                #expect(connections == [2, 2, 2] && harness.origin.log.snapshot().requests.count == 2)
                group.update(DownloadLimits())
                await harness.origin.log.waitForRequests(4)
                for await case .progress(let progress) in download.events where progress.connections == 4 { break }
                await download.cancel(keepingPartial: false)
            }
        }
    }
}
