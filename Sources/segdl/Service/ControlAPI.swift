import HTTPTypes
import Hummingbird
import SegmentedDownload
import SegmentedDownloadCore
import SegmentedDownloadService
import ServiceLifecycle

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The service's HTTP API. <doc:BackgroundService> describes it for its users.
struct ControlAPI: Sendable {
    let control: QueueControl
    let events: EventLog
    /// Identifies this run of the service in the numbers of events.
    let run: String
    /// Whether clients come over TCP: then a body has at most ``WebGuard/lengthMax`` bytes, and is examined before it is
    /// decoded.
    var isRemote = false
    /// Ends the service.
    let stop: @Sendable () -> Void

    /// 25 s: how long a request waits for an entry to come to rest, before it answers with the entry as it is.
    private static let waitMax: Duration = .seconds(25)
    /// 10,000 rows of the history, some megabytes, in one answer.
    private static let historyMax = 10_000

    func add(to router: some RouterMethods<ServiceContext>) {
        let api = router.group("v1").add(middleware: APIErrors())
        api.get { _, _ in try await self.summary() }
        api.get("downloads") { request, context in
            try await self.list(request).response(from: request, context: context)
        }
        api.post("downloads") { request, context in try await self.add(request, context) }
        for action in QueueControl.Action.allCases {
            api.post("downloads/\(action.rawValue)") { request, context in
                JSONAnswer(try await self.control.perform(action, on: try await self.body(request, context)))
            }
        }
        api.get("downloads/:id") { request, context in try await self.entry(request, context) }
        api.get("limits") { _, _ in JSONAnswer(self.control.policy.texts) }
        api.patch("limits") { request, context in
            try await self.control.policy.update(try await self.body(request, context))
            return JSONAnswer(self.control.policy.texts)
        }
        api.get("history") { request, _ in try await self.history(request) }
        api.get("events") { request, _ in
            EventStream(self.events, run: self.run, request)
        }
        api.post("stop") { _, _ in
            self.stop()
            return JSONAnswer(["stopping": true], status: .accepted)
        }
    }

    private func summary() async throws -> JSONAnswer {
        JSONAnswer(try await self.control.summary(run: self.run, eventLast: self.events.numberLast))
    }

    private func list(_ request: Request) async throws -> any ResponseGenerator {
        let parameters = request.uri.queryParameters
        var entries =
            if let text = parameters["named"] {
                try await self.control.entries(String(text), in: parameters["directory"].map { String($0) })
            } else {
                try await self.control.queue.entries()
            }
        if let state = request.uri.queryParameters["state"] {
            let states = state.split(separator: ",").map { QueueEntry.State(rawValue: String($0)) }
            guard !states.contains(nil) else {
                throw DownloadError(
                    .usage, "state must be among \(QueueEntry.State.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            entries = entries.filter { states.contains($0.state) }
        }
        if request.headers[.accept] == EntryLines.type { return EntryLines(entries: entries) }
        return JSONAnswer(["downloads": entries.map { EntryRecord($0) }])
    }

    private func add(_ request: Request, _ context: ServiceContext) async throws -> JSONAnswer {
        let ids = try await self.control.add(try await self.body(request, context))
        return JSONAnswer(Submission.Answer(ids: ids.map(\.rawValue)), status: .created)
    }

    private func entry(_ request: Request, _ context: ServiceContext) async throws -> JSONAnswer {
        let text = PercentEncoding.decode(try context.parameters.require("id").utf8)
        let directory = request.uri.queryParameters["directory"].map { String($0) }
        let record = try await self.control.record(text, in: directory)
        guard let until = request.uri.queryParameters["until"], let id = QueueEntry.ID(rawValue: record.id) else {
            return JSONAnswer(record)
        }
        let states = Set(until.split(separator: ",").map { String($0) })
        return JSONAnswer(try await self.control.wait(for: id, until: states, atMost: Self.waitMax))
    }

    private func history(_ request: Request) async throws -> JSONAnswer {
        func number(_ name: Substring, else standard: Int) throws(DownloadError) -> Int {
            guard let text = request.uri.queryParameters[name] else { return standard }
            guard let number = Int(text), number >= 0 else {
                throw DownloadError(.usage, "\(name) must be a number, 0 or more")
            }
            return number
        }
        let rows = try await self.control.queue.history(
            limit: min(try number("limit", else: 100), Self.historyMax), offset: try number("offset", else: 0))
        return JSONAnswer(["downloads": rows.map { EntryRecord($0) }])
    }

    /// - Throws: ``DownloadError`` with code `usage` if the body is not JSON of this form.
    private func body<Body: Decodable>(_ request: Request, _ context: ServiceContext) async throws -> Body {
        // A web page can send no other type to a foreign server without asking it first.
        guard request.headers[.contentType]?.hasPrefix("application/json") == true else {
            throw HTTPError(.unsupportedMediaType, message: "the Content-Type must be application/json")
        }
        let buffer = try await request.body.collect(upTo: self.isRemote ? WebGuard.lengthMax : context.maxUploadSize)
        if self.isRemote, let problem = RPCText.problem(in: Array(buffer.readableBytesView)) {
            throw DownloadError(.usage, "the request's body is refused: \(problem)")
        }
        do {
            return try JSONDecoder().decode(Body.self, from: Data(buffer.readableBytesView))
        } catch let error as DownloadError {
            throw error
        } catch {
            throw DownloadError(.usage, "the request's body cannot be read: \(JSONProblem.text(error))")
        }
    }
}

/// What is wrong with a JSON text, in a few words.
enum JSONProblem {
    static func text(_ error: any Error) -> String {
        guard let error = error as? DecodingError else { return "it is not JSON" }
        func place(_ context: DecodingError.Context) -> String {
            context.codingPath.isEmpty
                ? "" : " at \(context.codingPath.map(\.stringValue).joined(separator: ".").shown)"
        }
        switch error {
        case .keyNotFound(let key, let context): return "\(key.stringValue.shown) is missing\(place(context))"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            return "a value has another type\(place(context))"
        case .dataCorrupted(let context): return "it is not JSON of the right form\(place(context))"
        @unknown default: return "it is not JSON of the right form"
        }
    }
}

/// An answer with a JSON body.
struct JSONAnswer: ResponseGenerator {
    private let body: Result<Data, any Error>
    private let status: HTTPResponse.Status

    init(_ value: some Encodable, status: HTTPResponse.Status = .ok) {
        let encoder = JSONEncoder()
        // Sorted keys would take half of the time of a long list.
        encoder.outputFormatting = .withoutEscapingSlashes
        self.body = Result { try encoder.encode(value) }
        self.status = status
    }

    func response(from request: Request, context: some RequestContext) throws -> Response {
        let data = try self.body.get()
        return Response(
            status: self.status, headers: [.contentType: "application/json", .cacheControl: "no-store"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: data)))
    }
}

/// A list of entries in lines, each of which is a JSON array of some of them: a client reads the first ones while the
/// others are being encoded, and a long list needs little memory.
struct EntryLines: ResponseGenerator {
    static let type = "application/x-ndjson"
    /// 256 entries, some 100 KB.
    private static let batch = 256

    let entries: [QueueEntry]

    func response(from request: Request, context: some RequestContext) -> Response {
        let entries = self.entries
        let body = ResponseBody { writer in
            let encoder = JSONEncoder()
            encoder.outputFormatting = .withoutEscapingSlashes
            for start in stride(from: 0, to: entries.count, by: Self.batch) {
                let records = entries[start..<min(start + Self.batch, entries.count)].map { EntryRecord($0) }
                var line = ByteBuffer(bytes: try encoder.encode(records))
                line.writeString("\n")
                try await writer.write(line)
            }
            try await writer.finish(nil)
        }
        return Response(status: .ok, headers: [.contentType: Self.type, .cacheControl: "no-store"], body: body)
    }
}

/// The body of an answer that is an error.
struct ErrorAnswer: Codable, Hashable, Sendable {
    var error: EntryRecord.Failure
}

/// Turns errors into answers.
struct APIErrors: RouterMiddleware {
    func handle(
        _ request: Request, context: ServiceContext,
        next: @concurrent (Request, ServiceContext) async throws -> Response
    ) async throws -> Response {
        var response = try await self.answer(request, context, next)
        if let name = HTTPField.Name(ServiceRecord.apiField) {
            response.headers[name] = "\(ServiceRecord.apiVersion)"
        }
        return response
    }

    private func answer(
        _ request: Request, _ context: ServiceContext,
        _ next: @concurrent (Request, ServiceContext) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as DownloadError {
            return try Self.response(error, Self.status(of: error), request, context)
        } catch let error as HTTPError {
            let text = error.body ?? error.status.reasonPhrase
            return try Self.response(DownloadError(.usage, text), error.status, request, context)
        }
    }

    private static func response(
        _ error: DownloadError, _ status: HTTPResponse.Status, _ request: Request, _ context: ServiceContext
    ) throws -> Response {
        try JSONAnswer(ErrorAnswer(error: EntryRecord.Failure(error)), status: status)
            .response(from: request, context: context)
    }

    private static func status(of error: DownloadError) -> HTTPResponse.Status {
        switch error.code {
        case .usage: .badRequest
        case .policy: .forbidden
        case .exists: .conflict
        case .space: .init(code: 507, reasonPhrase: "Insufficient Storage")
        case .cancelled: .serviceUnavailable
        default: .internalServerError
        }
    }
}

/// Events of the service as server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html).
///
/// Each has the data that `--json` writes. A reader that connects again sends the ID of its last event, and gets those
/// after it. If some of them are no longer in the log, the event `lost` comes first.
struct EventStream: ResponseGenerator {
    private let log: EventLog
    private let run: String
    /// The number of the reader's last event.
    private let number: Int
    /// Whether the reader's last event is not of this run.
    private let isLost: Bool
    /// The entries that the reader asks for; nil for all.
    private let ids: Set<String>?

    /// 15 s: a comment at this interval shows that the connection is open, and a write to a closed one fails.
    private static let heartbeat: Duration = .seconds(15)

    init(_ log: EventLog, run: String, _ request: Request) {
        self.log = log
        self.run = run
        let parameters = request.uri.queryParameters
        let last = request.headers[.lastEventID] ?? parameters["after"].map { String($0) }
        let parts = last?.split(separator: "-", omittingEmptySubsequences: false) ?? []
        if parts.count == 2, parts[0] == run, let number = Int(parts[1]), (0...log.numberLast).contains(number) {
            (self.number, self.isLost) = (number, false)
        } else {
            (self.number, self.isLost) = (log.numberLast, last != nil)
        }
        self.ids = parameters["ids"].map { Set($0.split(separator: ",").map { String($0) }) }
    }

    func response(from request: Request, context: some RequestContext) -> Response {
        let (log, run, ids, isLost, number) = (self.log, self.run, self.ids, self.isLost, self.number)
        let body = ResponseBody { writer in
            try await request.body.consumeWithCancellationOnInboundClose { _ in
                if isLost { try await writer.write(Self.lost) }
                var number = number
                // The wait for a change ends with a heartbeat, because a queue may have no event for hours.
                for await isChange in log.changes(heartbeat: Self.heartbeat).cancelOnGracefulShutdown() {
                    var batch = log.batch(after: number)
                    if !isChange, batch.entries.isEmpty { try await writer.write(ByteBuffer(string: ":\n\n")) }
                    while let last = batch.entries.last {
                        number = last.number
                        let bytes = Self.frames(batch, ids: ids, run: run)
                        if bytes.readableBytes > 0 { try await writer.write(bytes) }
                        batch = log.batch(after: number)
                    }
                }
            }
            try await writer.finish(nil)
        }
        return Response(
            status: .ok, headers: [.contentType: "text/event-stream", .cacheControl: "no-store"], body: body)
    }

    private static func frames(_ batch: EventLog.Batch, ids: Set<String>?, run: String) -> ByteBuffer {
        var buffer = batch.isLost ? Self.lost : ByteBuffer()
        for entry in batch.entries {
            if let ids, let file = entry.file, !(file.id.map { ids.contains($0.rawValue) } ?? false) { continue }
            buffer.writeString("id: \(run)-\(entry.number)\nevent: \(entry.name)\ndata: \(entry.line)\n\n")
        }
        return buffer
    }

    private static let lost = ByteBuffer(string: "event: lost\ndata: {}\n\n")
}

extension HTTPField.Name {
    fileprivate static let lastEventID = HTTPField.Name("Last-Event-ID")!
}
