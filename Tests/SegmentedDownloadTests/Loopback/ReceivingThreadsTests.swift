import Foundation
import HTTPTypes
import Origin
import Synchronization
import TestSupport
import Testing

@testable import SegmentedDownload

/// Downloads whose connections are spread over several event loops.
@Suite struct ReceivingThreadsTests {
    private static func configuration() -> DownloadConfiguration {
        var configuration = DownloadConfiguration()
        configuration.receivingThreads = 3
        configuration.trust.verifiesCertificates = false
        return configuration
    }

    private final class Arrivals: Sendable {
        private let state = Mutex(0)

        var count: Int { self.state.withLock { $0 } }

        func add() { self.state.withLock { $0 += 1 } }
    }

    @Test("Bodies of the same time are received by different loops, and their connections are used again")
    func loops() async throws {
        try await withOrigin(.init(tls: true)) { origin in
            var configuration = AsyncHTTPClientTransport.Configuration()
            configuration.trust.verifiesCertificates = false
            configuration.loops = .init(countMax: 3, spreadsAll: false)
            var request = TransportRequest(url: try SourceURL(origin.url("/4M/file.bin")), fields: HTTPFields())
            request.length = 4.mebibytes
            try await AsyncHTTPClientTransport.withTransport(configuration) { [request] transport in
                for _ in 0..<2 {
                    let arrivals = Arrivals()
                    let lengths = try await withThrowingTaskGroup(of: Int64.self) { tasks in
                        for _ in 0..<3 {
                            tasks.addTask {
                                try await transport.withResponse(to: request) { _, body in
                                    arrivals.add()
                                    // All three are open at the same time.
                                    while arrivals.count < 3 { await Task.yield() }
                                    var length: Int64 = 0
                                    while let piece = try await body.next() { length += Int64(piece.count) }
                                    return length
                                }
                            }
                        }
                        return try await tasks.reduce(into: []) { $0.append($1) }
                    }
                    #expect(lengths == [4.mebibytes, 4.mebibytes, 4.mebibytes])
                    #expect(transport.loops.count == 3)
                }
            }
            #expect(origin.log.snapshot().connectionsCount == 3)
        }
    }

    @Test("A file is complete, also if its connections break, stall or are slow", arguments: [false, true])
    func faults(isTLS: Bool) async throws {
        try await Harness.run(.init(tls: isTLS)) { harness in
            let behaviours = [
                "", "reset-after=300000:all", "close-after=300000:all", "stall-after=500000:2", "rate=2M&slow=2:10000",
            ]
            for (number, behaviour) in behaviours.enumerated() {
                let result = await harness.fetch("/8M/\(number).bin?\(behaviour)", configuration: Self.configuration())
                {
                    $0.segments = .exactly(6)
                    $0.stallTimeout = .milliseconds(500)
                    $0.retries = 1000
                }
                #expect(result.code == nil, "\(behaviour): \(result)")
                #expect(harness.contains(seed: 1, length: 8.mebibytes), "\(behaviour)")
                try harness.remove(harness.path)
            }
        }
    }

    @Test("An interrupted download is resumed, and no durable byte is fetched again")
    func resumed() async throws {
        try await Harness.run(.init(tls: true)) { harness in
            let request = try harness.request(ResumeTests.stuck) { $0.segments = .exactly(6) }
            try await harness.withGroup(Self.configuration()) { group in
                let download = try group.add(request)
                await download.reached(ResumeTests.half)
                await download.pause()
                #expect(download.state == .paused)
            }
            let saved = try await SavedDownload(at: FilePath(harness.path))
            #expect(saved.bytesDone >= ResumeTests.half)
            harness.origin.log.reset()
            let result = await harness.fetch(ResumeTests.whole, configuration: Self.configuration())
            #expect(result.code == nil, "\(result)")
            #expect(harness.bytesRequested(of: 8.mebibytes) == 8.mebibytes - saved.bytesDone)
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
        }
    }

    @Test("Files of the same time are written by several threads, within the limits of a group")
    func files() async throws {
        try await Harness.run(.init(tls: true)) { harness in
            var configuration = Self.configuration()
            configuration.limits.bytesPerSecond = 400 << 20
            configuration.limits.memory = 16 << 20
            let paths = (0..<6).map { harness.directory + "/\($0).bin" }
            try await harness.withGroup(configuration) { group in
                let downloads = try paths.indices.map { number in
                    try group.add(try harness.request("/8M/\(number).bin") { $0.destination = .file(paths[number]) })
                }
                for download in downloads { #expect(try await download.result().bytes == 8.mebibytes) }
            }
            for path in paths {
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: path, length: 8.mebibytes) == nil)
            }
        }
    }

    @Test("A cancelled download ends, and so do its threads")
    func cancelled() async throws {
        try await Harness.run(.init(tls: true)) { harness in
            let request = try harness.stuckRequest { $0.segments = .exactly(6) }
            try await harness.withGroup(Self.configuration()) { group in
                let download = try group.add(request)
                await download.reached(1.mebibytes)
                await download.cancel()
                #expect(download.state == .cancelled)
            }
        }
    }
}
