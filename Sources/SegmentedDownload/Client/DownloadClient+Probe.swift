import HTTPTypes
import SegmentedDownloadCore

extension DownloadClient {
    /// Returns what the server reports about a file, using one request for its first byte.
    ///
    /// Mirrors are not queried, nothing is written and the request is not repeated.
    ///
    /// - Throws: The ``DownloadError`` that a download of the request would fail with; code `cancelled` if the task is
    ///   cancelled.
    public func probe(_ request: DownloadRequest) async throws(DownloadError) -> RemoteFile {
        let naming = DestinationNaming(request: request, id: Download.ID(rawValue: "0"), storage: self.storage)
        return try await self.ask(request, RangeRequest(lowerBound: 0, upperBound: 1)) {
            follower, head, response, _, _ in
            try Self.describe(request, head, response, follower, naming)
        }
    }

    /// Fetches a short text, such as a list of checksums, into memory. Invalid UTF-8 is replaced. A text that the server sends with
    /// gzip or deflate, although they were not accepted, is decoded.
    ///
    /// - Throws: The ``DownloadError`` that a download of the request would fail with; code `space` if the text is
    ///   longer than `lengthMaximum` bytes, `integrity` if it does not have a digest that the server states, `cancelled`
    ///   if the task is cancelled.
    public func text(
        of request: DownloadRequest, lengthMaximum: Int = 1 << 20
    ) async throws(DownloadError) -> String {
        String(decoding: try await self.bytes(of: request, lengthMaximum: lengthMaximum), as: UTF8.self)
    }

    /// Fetches a short document, such as a metalink, into memory. ``withBytes(of:window:_:)`` delivers files of any length
    /// in pieces.
    ///
    /// - Throws: The same errors as ``text(of:lengthMaximum:)``.
    public func bytes(
        of request: DownloadRequest, lengthMaximum: Int = 1 << 20
    ) async throws(DownloadError) -> [UInt8] {
        try await self.document(request, lengthMaximum: lengthMaximum).bytes
    }

    /// Fetches a short document, and returns it with what its links are resolved against.
    ///
    /// - Throws: The same errors as ``text(of:lengthMaximum:)``.
    package func document(
        _ request: DownloadRequest, lengthMaximum: Int
    ) async throws(DownloadError) -> FetchedDocument {
        try await self.ask(request, RangeRequest(isRanged: false)) { follower, head, response, announced, body in
            guard case .whole(let resource) = response else {
                throw response.failure(host: request.source.host)
            }
            var bytes: [UInt8] = []
            while let chunk = try await body.next() {
                chunk.withBytes { bytes.append(contentsOf: $0) }
                guard bytes.count <= lengthMaximum else {
                    throw DownloadError(
                        .space, "\(request.source) is longer than the limit of \(lengthMaximum) bytes")
                }
            }
            var check = DocumentCheck(announced)
            check.add(trailers: body.trailers)
            if let failure = check.failure(of: bytes, "\(request.source)") { throw failure }
            let next = LinkFields(head.fields).next
            return FetchedDocument(
                bytes: try Self.decoded(bytes, from: resource.contentEncoding, lengthMaximum, of: request.source),
                source: follower.current,
                next: try next.map { (target) throws(DownloadError) in try follower.current.resolve(location: target) })
        }
    }

    /// The document without a content coding that the server chose, although none was accepted.
    private static func decoded(
        _ bytes: [UInt8], from coding: String?, _ lengthMaximum: Int, of source: SourceURL
    ) throws(DownloadError) -> [UInt8] {
        do throws(ContentCoding.Failure) {
            return try ContentCoding.decoded(bytes, from: coding, lengthMax: lengthMaximum)
        } catch {
            switch error {
            case .malformed:
                throw DownloadError(
                    .protocol,
                    "\(source) does not have the content coding that the server states (\((coding ?? "").printable))",
                    hint: "The response may have been cut off: try again")
            case .tooLong:
                throw DownloadError(
                    .space, "\(source) is longer than the limit of \(lengthMaximum) bytes when it is decoded")
            }
        }
    }

    /// Sends one request to the source, with the fields, credentials and redirect rules of a download.
    private func ask<Answer: Sendable>(
        _ request: DownloadRequest, _ range: RangeRequest,
        _ consume:
            @escaping @Sendable (
                RedirectFollower, ResponseHead, RangeResponse, AnnouncedDigests, any ResponseBody
            ) async throws -> Answer
    ) async throws(DownloadError) -> Answer {
        do {
            let follower = try self.follower(of: request)
            let board = self.notices.map { NoticeBoard($0) }
            try await self.awaitHost(of: request, board)
            return try await self.within(request.options.headPatience(isOnly: true), of: request.source.host) {
                try await follower.withResponse(to: range) { head, response, announced, body in
                    self.share(response, of: request, board)
                    return try await consume(follower, head, response, announced, body)
                }
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    /// Waits while the host refuses requests of other processes, in total as long as one refusal may ask for.
    ///
    /// - Throws: ``DownloadError`` with code `server` if other processes are refused again and again.
    private func awaitHost(of request: DownloadRequest, _ board: NoticeBoard?) async throws {
        let key = HostKey(request.source.host)
        let end = self.clock.now + ConcurrencyBudget.retryAfterMax
        while let refusal = board?.news(now: self.clock.now).first(where: { $0.host == key && $0.kind == .refusal }) {
            guard refusal.until <= end else {
                throw DownloadError(
                    .server, "\(request.source.host) has asked other processes to wait again and again",
                    isTransient: true, retryAfter: refusal.until - self.clock.now)
            }
            try await self.clock.sleep(until: refusal.until)
        }
    }

    /// Lets other processes know if a response is a refusal.
    private func share(_ response: RangeResponse, of request: DownloadRequest, _ board: NoticeBoard?) {
        let now = self.clock.now
        guard let notice = response.notice(of: HostKey(request.source.host), now: now) else { return }
        board?.post(notice, now: now)
    }

    /// The way to the source of a request, with the fields, credentials and redirect rules of a download.
    func follower(of request: DownloadRequest) throws -> RedirectFollower {
        let access = Access(self.configuration)
        try access.check(request.source)
        try request.validate()
        return access.follower(to: request.source, of: request, over: self.transport)
    }

    private static func describe(
        _ request: DownloadRequest, _ head: ResponseHead, _ response: RangeResponse, _ follower: RedirectFollower,
        _ naming: DestinationNaming
    ) throws(DownloadError) -> RemoteFile {
        let resource: RemoteResource
        var supportsRanges = false
        switch response {
        case .partial(_, let found):
            resource = found
            supportsRanges = true
        case .whole(let found): resource = found
        // An empty file has no first byte, so the origin answers 416.
        case .unsatisfiable(completeLength: 0?): resource = RemoteResource(completeLength: 0)
        default: throw response.failure(host: request.source.host)
        }
        let links = LinkFields(head.fields)
        let base = follower.current
        var known: Set<SourceURL> = []
        let duplicates = links.duplicates.compactMap { try? base.resolve(location: $0) }
            .filter { known.insert($0).inserted }.prefix(DownloadRequest.sourcesMax)
        return RemoteFile(
            source: "\(request.source)", redirects: follower.hops.map(\.description), status: head.status,
            length: resource.completeLength, supportsRanges: supportsRanges,
            validator: resource.validator == Validator(entityTag: nil, lastModified: nil)
                ? nil : "\(resource.validator)",
            digest: resource.ownDigests.first,
            type: head.fields[values: .contentType].first?.printable, name: naming.name(suggestedBy: head).value,
            duplicates: Array(duplicates), metalink: links.metalink.flatMap { try? base.resolve(location: $0) },
            resource: resource)
    }

    /// Runs `body` with a time limit.
    ///
    /// - Throws: ``DownloadError`` with code `network` if `body` takes longer than `time`.
    func within<Answer: Sendable>(
        _ time: Duration, of host: String, _ body: @escaping @Sendable () async throws -> Answer
    ) async throws -> Answer {
        let end = self.clock.now + time
        return try await withThrowingTaskGroup(of: Answer?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                try await self.clock.sleep(until: end)
                return nil
            }
            defer { group.cancelAll() }
            guard let first = try await group.next(), let answer = first else {
                throw DownloadError(.network, "\(host): no answer within \(time.inSeconds) s", isTransient: true)
            }
            return answer
        }
    }
}
