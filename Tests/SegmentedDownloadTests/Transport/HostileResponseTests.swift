import Foundation
import TestSupport
import Testing

@testable import SegmentedDownload

/// Nothing that a server sends ends the process.
@Suite("Hostile responses")
struct HostileResponseTests {
    /// 2,000 take seconds. `SEGDL_RESPONSES=1000000` runs as many, once before a release.
    private static let count =
        ProcessInfo.processInfo.environment["SEGDL_RESPONSES"].flatMap { UInt64($0) } ?? 2000
    /// As many requests at once.
    private static let workers: UInt64 = 16

    /// The body of a response in one of three framings.
    private enum Framing: UInt64, CaseIterable {
        case unframed, length, chunked

        var text: String {
            switch self {
            case .unframed: "\r\n"
            case .length: "Content-Length: 5\r\n\r\nhello"
            case .chunked: "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            }
        }
    }

    private typealias Codes = [UInt64: DownloadError.Code?]

    /// Asks for the resources with the numbers below `count`, and returns how each request ended: nil if it delivered
    /// something.
    private static func codes(
        _ count: UInt64, _ answer: @escaping @Sendable (UInt64) -> RawServer.Answer,
        _ ask: @escaping @Sendable (UInt64, DownloadRequest, DownloadClient) async throws(DownloadError) -> Void
    ) async throws -> Codes {
        try await TestPlaces.take(.locks) { () -> Codes in
            let notFound = RawServer.Answer(bytes: Array("HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n".utf8))
            return try await RawServer.run { target in
                UInt64(target.dropFirst()).map { answer($0) } ?? notFound
            } _: { server -> Codes in
                var configuration = DownloadConfiguration()
                configuration.redirectsMax = 3
                return try await withDownloadClient(configuration) { client -> Codes in
                    try await withThrowingTaskGroup(of: Codes.self) { group -> Codes in
                        for worker in 0..<Self.workers {
                            group.addTask {
                                var codes: Codes = [:]
                                for number in stride(from: worker, to: count, by: Int(Self.workers)) {
                                    let url = try SourceURL("http://127.0.0.1:\(server.port)/\(number)")
                                    do throws(DownloadError) {
                                        try await ask(number, DownloadRequest(url), client)
                                        codes.updateValue(nil, forKey: number)
                                    } catch {
                                        codes.updateValue(error.code, forKey: number)
                                    }
                                }
                                return codes
                            }
                        }
                        var all: Codes = [:]
                        for try await codes in group { all.merge(codes) { first, _ in first } }
                        return all
                    }
                }
            }
        }
    }

    @Test("Of the statuses from 000 to 999 only those of success deliver a document, and none ends the process")
    func statuses() async throws {
        let framings = UInt64(Framing.allCases.count)
        let codes = try await Self.codes(1000 * framings) { number in
            let status = number / framings
            let framing = Framing(rawValue: number % framings) ?? .unframed
            let digits = "\(status / 100)\(status / 10 % 10)\(status % 10)"
            return RawServer.Answer(bytes: Array("HTTP/1.1 \(digits) X\r\n\(framing.text)".utf8))
        } _: { (_, request, client) throws(DownloadError) in
            _ = try await client.bytes(of: request)
        }
        #expect(codes.count == Int(1000 * framings))
        for (number, code) in codes {
            let status = number / framings
            // The raw server may reset a connection before its answer was read.
            let isSuccess = status / 100 == 2 && ![202, 204, 205, 206].contains(status)
            let isDelivered = code == nil || code == .network || status != 200 && code == .protocol
            let isExpected = isSuccess ? isDelivered : code != nil && code != .internal
            #expect(isExpected, "\(status): \(code?.rawValue ?? "")")
            if status < 100 { #expect(code == .protocol, "\(status)") }
        }
    }

    @Test("A response with hostile fields is delivered or is an error that is not the program's own")
    func fields() async throws {
        let codes = try await Self.codes(Self.count) { number in
            HostileResponse(number: number).answer
        } _: { (number, request, client) throws(DownloadError) in
            if number % 2 == 0 {
                _ = try await client.probe(request)
            } else {
                _ = try await client.bytes(of: request)
            }
        }
        #expect(codes.count == Int(Self.count))
        for (number, code) in codes where code == .internal { Issue.record("response \(number)") }
        // Both ends occur, or nothing was tested.
        #expect(codes.values.contains(nil) && codes.values.contains(.protocol))
    }

    @Test("A response with a status below 100 fails its own request, and the others of the run are not affected")
    func others() async throws {
        let codes = try await Self.codes(64) { number in
            let head = number % 4 == 0 ? "HTTP/1.1 099 X" : "HTTP/1.1 200 OK"
            return RawServer.Answer(bytes: Array("\(head)\r\nContent-Length: 5\r\n\r\nhello".utf8), keepsOpen: true)
        } _: { (_, request, client) throws(DownloadError) in
            _ = try await client.bytes(of: request)
        }
        for (number, code) in codes { #expect(code == (number % 4 == 0 ? .protocol : nil), "\(number)") }
    }
}
