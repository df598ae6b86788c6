import HTTPTypes
import SegmentedDownloadCore

/// Makes a program's transport usable by the engine, with the checks that the HTTP client makes for the built-in one.
///
/// Receive limits have no effect: a transport chooses the lengths of its pieces. Rates are limited all the same, because
/// the engine waits between pieces.
struct TransportAdapter: HTTPTransport {
    private let transport: any DownloadTransport

    init(_ transport: any DownloadTransport) {
        self.transport = transport
    }

    func limit(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {}

    func withResponse<Answer: Sendable>(
        to request: TransportRequest,
        _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
    ) async throws -> Answer {
        let response: TransportResponse
        do {
            response = try await self.transport.send(request)
        } catch {
            throw Self.failure(error, host: request.url.host)
        }
        let head = ResponseHead(status: response.status, fields: response.fields, received: SystemClock.date)
        return try await consume(head, Body(response, host: request.url.host))
    }

    /// The failure for an error. Any error of a cancelled task is a `CancellationError`.
    private static func failure(_ error: any Error, host: String) -> any Error {
        if Task.isCancelled { return CancellationError() }
        if let error = error as? DownloadError { return error }
        return DownloadError(.network, "\(host): \("\(error)".printable)", isTransient: true)
    }

    private final class Body: ResponseBody {
        /// 1 MiB: as long as the longest piece that the built-in transport reads. A reading window holds any piece.
        private static let chunkLengthMax = 1 << 20

        private let pieces: any BodyPieces
        private let host: String
        /// The length that the head states; `nil` if it states none.
        private let length: Int64?
        private var received: Int64 = 0
        /// What was not passed on of the last piece.
        private var rest: ArraySlice<UInt8> = []

        init(_ response: TransportResponse, host: String) {
            self.pieces = response.makePieces()
            self.host = host
            let stated = ContentLength.parse(response.fields[values: .contentLength])
            self.length = if case .exact(let length) = stated { length } else { nil }
        }

        func next() async throws -> (any BodyChunk)? {
            while self.rest.isEmpty {
                guard let piece = try await self.nextPiece() else {
                    // A sequence may end instead of throwing when its task is cancelled. That is not the end of the
                    // body.
                    try Task.checkCancellation()
                    try self.checkEnd()
                    return nil
                }
                self.received += Int64(piece.count)
                if let length, self.received > length {
                    throw DownloadError(.protocol, "\(self.host) sent more than the \(length) bytes that it announced")
                }
                self.rest = piece[...]
            }
            let chunk = self.rest.prefix(Self.chunkLengthMax)
            self.rest = self.rest.dropFirst(chunk.count)
            return Chunk(bytes: chunk)
        }

        private func nextPiece() async throws -> [UInt8]? {
            do {
                return try await self.pieces.next()
            } catch {
                throw TransportAdapter.failure(error, host: self.host)
            }
        }

        private func checkEnd() throws {
            guard let length, self.received < length else { return }
            throw DownloadError(.network, "\(self.host) ended the response before it was complete", isTransient: true)
        }
    }

    private struct Chunk: BodyChunk {
        let bytes: ArraySlice<UInt8>

        var count: Int { self.bytes.count }

        func withBytes<Answer>(_ body: (UnsafeRawBufferPointer) throws -> Answer) rethrows -> Answer {
            try self.bytes.withUnsafeBytes(body)
        }
    }
}
