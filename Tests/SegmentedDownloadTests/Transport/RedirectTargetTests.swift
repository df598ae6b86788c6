import HTTPTypes
import SegmentedDownloadCore
import Synchronization
import Testing

@testable import SegmentedDownload

@Suite("The remembered target of a redirect")
struct RedirectTargetTests {
    /// Sends the given answers in order, and records what was requested.
    private final class Scripted: HTTPTransport {
        private let answers: Mutex<[ResponseHead]>
        private let paths = Mutex<[String]>([])

        init(_ answers: [ResponseHead]) { self.answers = Mutex(answers) }

        var requested: [String] { self.paths.withLock { $0 } }

        func withResponse<Answer: Sendable>(
            to request: TransportRequest,
            _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
        ) async throws -> Answer {
            self.paths.withLock { $0.append(request.url.path) }
            let head = try self.answers.withLock { answers in
                try #require(!answers.isEmpty)
                return answers.removeFirst()
            }
            return try await consume(head, Empty())
        }

        func limit(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {}
    }

    private struct Empty: ResponseBody {
        func next() async throws -> (any BodyChunk)? { nil }
    }

    private static func redirect(to path: String) -> ResponseHead {
        ResponseHead(status: 302, fields: [.location: path])
    }

    private static let bytes = ResponseHead(
        status: 206, fields: [.contentRange: "bytes 0-9/10", .contentLength: "10", .eTag: "\"a\""])

    @Test("A target with another resource is not remembered: the next request goes to the source again")
    func otherResource() async throws {
        let transport = Scripted([
            Self.redirect(to: "/one"), Self.bytes, ResponseHead(status: 403, fields: [:]),
            Self.redirect(to: "/two"), Self.bytes, Self.redirect(to: "/one"), Self.bytes, Self.bytes,
        ])
        let follower = RedirectFollower(
            source: try SourceURL("http://host/file"), fields: [:], access: Access(), transport: transport)
        let first = try await follower.withResponse(to: RangeRequest(lowerBound: 0)) { _, response, _, _ in response }
        guard case .partial(_, let resource) = first else {
            Issue.record("\(first)")
            return
        }
        let range = RangeRequest(lowerBound: 0, upperBound: 10, identity: resource)
        var answers: [RangeResponse] = []
        for _ in 0..<3 {
            answers.append(try await follower.withResponse(to: range) { _, response, _, _ in response })
        }
        #expect(answers.first == .moved(nil))
        #expect(answers.map(\.hasBytes) == [false, true, true])
        #expect(transport.requested == ["/file", "/one", "/one", "/file", "/two", "/file", "/one", "/one"])
    }
}
