import HTTPTypes
import Origin
import SegmentedDownloadCore
import Simulator
import TestSupport

@testable import SegmentedDownload

/// A transport and a server's file, to test that all implementations of ``HTTPTransport`` follow the same rules.
struct NetworkDoor: Sendable {
    enum Kind: CaseIterable, Sendable {
        /// ``AsyncHTTPClientTransport`` and ``Origin``, over loopback.
        case sockets
        /// ``SimulatedNetwork``.
        case simulated
    }

    /// What the server does with every request.
    enum Server: Sendable {
        case answering
        /// It redirects to another URL.
        case redirecting
        /// It resets the connection within the body.
        case resetting
        /// It closes the connection within the body.
        case truncating
        /// It sends a part of the body and then nothing.
        case stalling
        /// It accepts the request and sends nothing.
        case silent
        /// It accepts no connection.
        case refusing
    }

    let transport: any HTTPTransport
    let source: SourceURL
    /// The bytes of the file.
    let content: [UInt8]

    static func run(
        _ kind: Kind, _ server: Server = .answering, length: Int = 100_000,
        _ body: @escaping @Sendable (NetworkDoor) async throws -> Void
    ) async throws {
        switch kind {
        case .sockets:
            try await TestPlaces.take(.locks) {
                try await withOrigin { origin in
                    let query = Self.query(server, length: length)
                    let source = try SourceURL(origin.url("/\(length)/file.bin\(query)"))
                    if server == .refusing { try await origin.stopAccepting() }
                    let content = OriginContent(seed: 1).bytes(0..<Int64(length))
                    try await AsyncHTTPClientTransport.withTransport { transport in
                        try await body(NetworkDoor(transport: transport, source: source, content: content))
                    }
                }
            }
        case .simulated:
            try withSimulatedClock { clock in
                try await body(Self.simulated(server, length: length, clock))
            }
        }
    }

    private static func query(_ server: Server, length: Int) -> String {
        switch server {
        case .answering, .refusing: ""
        case .redirecting: "?redirect=302:/1M/other"
        case .resetting: "?reset-after=\(length / 2):all"
        case .truncating: "?close-after=\(length / 2):all"
        case .stalling: "?stall-after=\(length / 2):all"
        case .silent: "?no-answer=all"
        }
    }

    private static func simulated(_ server: Server, length: Int, _ clock: SimulatedClock) throws -> NetworkDoor {
        var generator = SplitMix64(seed: 1)
        let version = SimulatedNetwork.version(1, count: length, using: &generator)
        var origin = SimulatedOrigin(version)
        origin.redirects = server == .redirecting
        let network = SimulatedNetwork(seed: 1, clock: clock, origins: [origin])
        network.chunkMax = 1 << 20
        // More than the chances of every fault: each of them is certain.
        network.faultiness = 1000
        network.faults =
            switch server {
            case .answering, .redirecting: []
            case .resetting: .reset
            case .truncating: .truncation
            case .stalling: .stall
            case .silent: .blackHole
            case .refusing: .refusal
            }
        return NetworkDoor(
            transport: network, source: try SourceURL("http://origin/file0"), content: version.bytes)
    }

    func request(_ fields: HTTPFields = HTTPFields()) -> TransportRequest {
        TransportRequest(url: self.source, fields: fields)
    }

    /// Requests the file and reads the whole body.
    func fetch(_ fields: HTTPFields = HTTPFields()) async throws -> (head: ResponseHead, bytes: [UInt8]) {
        try await self.transport.withResponse(to: self.request(fields)) { head, body in
            (head, try await body.rest().joined)
        }
    }
}

extension ResponseBody {
    /// All pieces from here to the end, held at the same time.
    func rest() async throws -> [any BodyChunk] {
        var pieces: [any BodyChunk] = []
        while let piece = try await self.next() { pieces.append(piece) }
        return pieces
    }
}

extension [any BodyChunk] {
    var joined: [UInt8] { self.flatMap { $0.withBytes { [UInt8]($0) } } }
}
