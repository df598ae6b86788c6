import Origin
import SegmentedDownload
import Testing

@Suite struct NetworkPolicyFeatureTests {
    /// Has `body` change something while two connections are stuck, and checks that the file completes.
    ///
    /// They have received nothing but heads: with equal rates segdl replaces none of them, however slow the machine is.
    private static func whileFetching(
        _ harness: Harness, _ body: (DownloadClient, Download) async throws -> Void
    ) async throws {
        let request = try harness.request("/8M/file.bin?rate=4M&stall-after=0:2") {
            $0.segments = .exactly(2)
            $0.stallTimeout = .seconds(3600)
            $0.retries = 1000
        }
        try await withDownloadClient { client in
            try await client.withGroup { group in
                let download = try group.add(request)
                await harness.origin.log.waitForRequests(2)
                try await body(client, download)
                #expect(try await download.result().bytes == 8.mebibytes)
            }
        }
        #expect(harness.contains(seed: 1, length: 8.mebibytes))
    }

    @Test("Connections begin at the interface that the policy names")
    func interface() async throws {
        try await Harness.run { harness in
            var configuration = DownloadConfiguration()
            configuration.network.interfaces = ["none0", "127.0.0.7"]
            #expect(await harness.fetch("/8M/file.bin", configuration: configuration).code == nil)
            let peers = harness.origin.log.snapshot().requests.map(\.peer)
            #expect(Set(peers) == ["127.0.0.7"])
        }
    }

    @Test("A changed network policy applies to running downloads: their connections move, and none starts over")
    func changed() async throws {
        try await Harness.run { harness in
            try await Self.whileFetching(harness) { client, download in
                #expect(harness.origin.log.snapshot().requests.map(\.peer) == ["127.0.0.1", "127.0.0.1"])
                client.update(network: NetworkPolicy(interfaces: ["127.0.0.8"]))
                _ = try await download.result()
                let peers = harness.origin.log.snapshot().requests.dropFirst(2).map(\.peer)
                #expect(Set(peers) == ["127.0.0.8"], "\(peers)")
            }
        }
    }

    @Test(
        "Without an allowed interface a download retries as if the network were down, and continues when one is allowed"
    )
    func forbidden() async throws {
        try await Harness.run { harness in
            try await Self.whileFetching(harness) { client, download in
                let events = download.events
                client.update(network: NetworkPolicy(interfaces: ["none0"]))
                for await event in events {
                    if case .retrying(let error, _, _) = event, error.message.contains("none0") { break }
                }
                client.update(network: NetworkPolicy())
            }
            let log = harness.origin.log.snapshot()
            #expect(log.bytesSent < 2 * 8.mebibytes)
        }
    }

    @Test("A download that fails without an interface names the allowed ones, and keeps what was fetched")
    func fails() async throws {
        try await Harness.run { harness in
            try await harness.interrupt(Harness.stuck, after: 1.mebibytes) { $0.stallTimeout = .seconds(3600) }
            var configuration = DownloadConfiguration()
            configuration.network.interfaces = ["none0"]
            let result = await harness.fetch("/8M/file.bin", configuration: configuration) { $0.retries = 0 }
            #expect(result.code == .network, "\(result)")
            #expect(harness.exists(harness.part) && harness.exists(harness.manifest))
        }
    }
}
