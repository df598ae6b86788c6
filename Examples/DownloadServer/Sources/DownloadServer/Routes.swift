import Hummingbird
import SegmentedDownload

/// The requests that the server answers.
struct Routes: Sendable {
    typealias Context = BasicRequestContext

    let service: DownloadService
    let queue: DownloadQueue

    var router: Router<Context> {
        let router = Router(context: Context.self)
        router.add(middleware: DownloadErrors())
        router.get("proxy", use: self.proxy)
        router.group("downloads")
            .get(use: self.list)
            .post(use: self.add)
            .get(":id", use: self.status)
            .delete(":id", use: self.cancel)
            .post(":id/pause", use: self.pause)
            .post(":id/resume", use: self.resume)
            .get(":id/events", use: self.events)
        return router
    }

    // MARK: All downloads

    /// `GET /downloads`: the unfinished downloads.
    @Sendable private func list(_ request: Request, context: Context) async throws -> [DownloadStatus] {
        try await self.service.downloads().downloads.map { DownloadStatus($0) }
    }

    private struct Submission: Decodable {
        let url: String
        /// The file's name. A template: see `NameTemplate`.
        let name: String?
    }

    /// `POST /downloads`: adds a download, or finds the unfinished one of the same URL and resumes it if it is paused or
    /// failed.
    @Sendable private func add(
        _ request: Request, context: Context
    ) async throws -> EditedResponse<DownloadStatus> {
        // Browsers do not let a foreign page send this type, so no page can start downloads on the user's machine.
        guard MediaType(from: request.headers[.contentType] ?? "")?.isType(.applicationJson) == true else {
            throw HTTPError(.unsupportedMediaType, message: "the Content-Type must be application/json")
        }
        let submission = try await request.decode(as: Submission.self, context: context)
        let source = try SourceURL(submission.url)
        var template: NameTemplate?
        if let name = submission.name { template = try NameTemplate(name) }
        var request = DownloadRequest(source, to: .directory(".", name: template))
        let id = Download.ID.random()
        request.id = id

        let group = try await self.service.downloads()
        // The group compares destinations, and a restored download's destination is its file, not the directory.
        let unfinished = group.download(for: source).flatMap { $0.state.isOver || $0.isStream ? nil : $0 }
        unfinished?.resume()
        let download = try unfinished ?? group.add(request)
        try await self.queue.save()
        return EditedResponse(
            status: download.id == id ? .created : .ok, headers: [.location: "/downloads/\(download.id)"],
            response: DownloadStatus(download))
    }

    // MARK: No file

    /// 8 MiB: what is held in memory for a client that reads slowly.
    private static let window: Int64 = 8 << 20

    /// `GET /proxy?url=URL`: the file's bytes as they arrive, from several connections. Nothing is stored.
    ///
    /// If the source fails midway, the connection is closed, so the client notices.
    @Sendable private func proxy(_ request: Request, context: Context) async throws -> Response {
        let source = try SourceURL(request.uri.queryParameters.require("url"))
        let bytes = try await self.service.downloads().stream(DownloadRequest(source), window: Self.window)
        // Before the response begins, so that a file that cannot be fetched has an error status.
        let length = try await bytes.length()
        let body = ResponseBody(contentLength: length.map { Int($0) }) { writer in
            for try await piece in bytes { try await writer.write(ByteBuffer(bytes: piece)) }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: "application/octet-stream"], body: body)
    }

    // MARK: One download

    /// `GET /downloads/ID`: the status of a download, also of one that is over.
    @Sendable private func status(_ request: Request, context: Context) async throws -> DownloadStatus {
        let (group, id) = try await self.target(of: context)
        if let download = group.download(id: id) { return DownloadStatus(download) }
        return try await self.ended(id, in: group)
    }

    /// `GET /downloads/ID/events`: the events from now on.
    @Sendable private func events(_ request: Request, context: Context) async throws -> ProgressStream {
        let (group, id) = try await self.target(of: context)
        if let download = group.download(id: id) { return ProgressStream(download) }
        return ProgressStream(ended: try await self.ended(id, in: group))
    }

    /// `POST /downloads/ID/pause`: returns when everything fetched is durable.
    @Sendable private func pause(_ request: Request, context: Context) async throws -> DownloadStatus {
        let download = try await self.unfinished(context)
        await download.pause()
        return DownloadStatus(download)
    }

    /// `POST /downloads/ID/resume`: the download runs when its turn comes.
    @Sendable private func resume(_ request: Request, context: Context) async throws -> HTTPResponse.Status {
        try await self.unfinished(context).resume()
        return .accepted
    }

    /// `DELETE /downloads/ID`: cancels a download and deletes what was fetched. Complete files stay.
    @Sendable private func cancel(_ request: Request, context: Context) async throws -> HTTPResponse.Status {
        try await self.unfinished(context).cancel(keepingPartial: false)
        try await self.queue.save()
        return .noContent
    }

    private func target(of context: Context) async throws -> (group: DownloadGroup, id: Download.ID) {
        guard let id = try Download.ID(uuid: context.parameters.require("id")) else {
            throw HTTPError(.badRequest, message: "the download's id is not a UUID")
        }
        return (try await self.service.downloads(), id)
    }

    private func unfinished(_ context: Context) async throws -> Download {
        let (group, id) = try await self.target(of: context)
        guard let download = group.download(id: id) else {
            throw HTTPError(.notFound, message: "there is no unfinished download \(id)")
        }
        return download
    }

    private func ended(_ id: Download.ID, in group: DownloadGroup) async throws -> DownloadStatus {
        guard let entry = try await group.historyEntry(id: id) else {
            throw HTTPError(.notFound, message: "there is no download \(id)")
        }
        return DownloadStatus(entry)
    }
}

/// Answers requests that the library refused with its message.
private struct DownloadErrors: RouterMiddleware {
    typealias Context = Routes.Context

    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as DownloadError {
            throw HTTPError(Self.status(error.code), message: error.description)
        }
    }

    /// As the library's article on servers recommends.
    private static func status(_ code: DownloadError.Code) -> HTTPResponse.Status {
        switch code {
        case .usage, .policy: .badRequest
        case .exists, .state, .changed: .conflict
        // The proxy's source.
        case .network, .tls, .auth, .protocol, .server, .integrity: .badGateway
        case .space: HTTPResponse.Status(code: 507)
        // The server is shutting down.
        case .cancelled: .serviceUnavailable
        default: .internalServerError
        }
    }
}
