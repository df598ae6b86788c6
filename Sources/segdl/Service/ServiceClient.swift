import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import SegmentedDownload
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The service's API, for the commands.
struct ServiceClient: Sendable {
    /// What a command does if the service does not run.
    enum Absence: Hashable, Sendable {
        /// Start it.
        case start
        /// Fail.
        case fail
    }

    private let http: HTTPClient
    private let paths: ServicePaths

    /// 30 s: every answer but one that is waited for comes in milliseconds.
    private static let answerTime: TimeAmount = .seconds(30)
    /// 256 MiB: a million entries.
    private static let answerMax = 256 << 20
    /// 10 minutes without use end a service that a command has started.
    private static let idleExit = "10m"

    /// Connects to the service, and calls `body`.
    ///
    /// - Throws: ``ServiceFailure`` if there is no service, or one of another version.
    static func run<Value: Sendable>(
        _ absence: Absence, _ body: (ServiceClient) async throws -> Value
    ) async throws -> Value {
        let paths = try ServicePaths(environment: ProcessInfo.processInfo.environment)
        if !ServiceSocket.answers(paths.socket) {
            guard absence == .start else {
                throw ServiceFailure("the service does not run", hint: "To start it: segdl daemon --detach")
            }
            do {
                _ = try await ServiceLauncher(paths: paths).start(["daemon", "--idle-exit", Self.idleExit])
            } catch {
                // Another command may have started it at the same moment.
                guard ServiceSocket.answers(paths.socket) else { throw error }
            }
        }
        // Its directory is this user's own, so nobody else listens there.
        try paths.prepare()
        let http = HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: .init(proxy: nil))
        do {
            let value = try await body(ServiceClient(http: http, paths: paths))
            try await http.shutdown()
            return value
        } catch {
            try await http.shutdown()
            throw error
        }
    }

    /// The client of a service that runs or has a queue, and is started then; nil otherwise.
    static func ifQueued<Value: Sendable>(_ body: (ServiceClient) async throws -> Value?) async throws -> Value? {
        guard let paths = try? ServicePaths(environment: ProcessInfo.processInfo.environment),
            ServiceSocket.answers(paths.socket) || FileFacts(paths.database) != nil
        else { return nil }
        return try await Self.run(.start, body)
    }

    /// The client of a service that runs; nil otherwise. Does not wait for one that hangs.
    static func ifRunning<Value: Sendable>(_ body: (ServiceClient) async throws -> Value?) async throws -> Value? {
        guard let paths = try? ServicePaths(environment: ProcessInfo.processInfo.environment),
            ServiceSocket.answers(paths.socket)
        else { return nil }
        return try await Self.run(.fail, body)
    }

    // MARK: Requests

    func get<Answer: Decodable>(_ path: String, waiting: TimeAmount = Self.answerTime) async throws -> Answer {
        try await self.send(.GET, path, body: nil, waiting)
    }

    func post<Answer: Decodable>(_ path: String, _ body: some Encodable) async throws -> Answer {
        try await self.send(.POST, path, body: JSONEncoder().encode(body), Self.answerTime)
    }

    func patch<Answer: Decodable>(_ path: String, _ body: some Encodable) async throws -> Answer {
        try await self.send(.PATCH, path, body: JSONEncoder().encode(body), Self.answerTime)
    }

    private func send<Answer: Decodable>(
        _ method: HTTPMethod, _ path: String, body: Data?, _ limit: TimeAmount
    ) async throws -> Answer {
        let response = try await self.response(method, path, body: body, limit)
        let bytes: ByteBuffer
        do {
            bytes = try await response.body.collect(upTo: Self.answerMax)
        } catch {
            throw Self.failure(error)
        }
        return try Self.decode(Answer.self, bytes, response.status)
    }

    /// The entries of the queue, in parts as they arrive.
    ///
    /// - Parameter query: The query, which begins with `?`.
    func entries(_ query: String = "", _ body: ([EntryRecord]) -> Void) async throws {
        let response = try await self.response(
            .GET, "/downloads" + query, body: nil, Self.answerTime, accepting: EntryLines.type)
        guard response.status == .ok else {
            let bytes = try await response.body.collect(upTo: Self.answerMax)
            let _: EntryRecord = try Self.decode(EntryRecord.self, bytes, response.status)
            return
        }
        var line = ByteBuffer()
        do {
            for try await var bytes in response.body {
                while let end = bytes.readableBytesView.firstIndex(of: UInt8(ascii: "\n")) {
                    if let part = bytes.readSlice(length: end - bytes.readerIndex + 1) {
                        line.writeImmutableBuffer(part)
                    }
                    body(try Self.decode([EntryRecord].self, line, .ok))
                    line.clear()
                }
                line.writeBuffer(&bytes)
            }
            guard line.readableBytes == 0 else { throw ServiceFailure("the service's answer is not complete") }
        } catch let error as ServiceFailure {
            throw error
        } catch {
            throw Self.failure(error)
        }
    }

    private func response(
        _ method: HTTPMethod, _ path: String, body: Data?, _ limit: TimeAmount, accepting type: String? = nil
    ) async throws -> HTTPClientResponse {
        guard let url = URL(httpURLWithSocketPath: self.paths.socket, uri: "/v1" + path) else {
            throw ServiceFailure("the socket's path \(self.paths.socket.shown) cannot be used")
        }
        var request = HTTPClientRequest(url: url.absoluteString)
        request.method = method
        if let type { request.headers.add(name: "Accept", value: type) }
        if let body {
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(bytes: body))
        }
        let response: HTTPClientResponse
        do {
            response = try await self.http.execute(request, deadline: .now() + limit)
        } catch {
            throw Self.failure(error)
        }
        let version = response.headers.first(name: ServiceRecord.apiField) ?? "none"
        guard version == "\(ServiceRecord.apiVersion)" else {
            throw ServiceFailure(
                "the service has version \(version.shown) of the API, and this program has \(ServiceRecord.apiVersion)",
                hint: "End the service with the program that has started it, and try again")
        }
        return response
    }

    private static func failure(_ error: any Error) -> ServiceFailure {
        switch error {
        case let error as ServiceFailure: error
        default:
            ServiceFailure("the service does not answer: \(error)", hint: "See segdl daemon's log, or start it again")
        }
    }

    private static func decode<Answer: Decodable>(
        _ type: Answer.Type, _ bytes: ByteBuffer, _ status: HTTPResponseStatus
    ) throws -> Answer {
        let data = Data(bytes.readableBytesView)
        guard (200..<300).contains(Int(status.code)) else {
            guard let answer = try? JSONDecoder().decode(ErrorAnswer.self, from: data) else {
                throw ServiceFailure("the service answers with status \(status.code)")
            }
            throw DownloadError(answer.error)
        }
        do {
            return try JSONDecoder().decode(Answer.self, from: data)
        } catch {
            throw ServiceFailure("the service's answer cannot be read: \(JSONProblem.text(error))")
        }
    }

    /// The entry or the row of the history that a user's word means.
    func record(_ word: String) async throws -> EntryRecord {
        try await self.get("/downloads/\(PercentEncoding.encode(word))?directory=\(Self.directory)")
    }

    /// The entries of the queue that a user's word may mean.
    func entries(named word: String) async throws -> [EntryRecord] {
        var records: [EntryRecord] = []
        try await self.entries("?named=\(PercentEncoding.encode(word))&directory=\(Self.directory)") { records += $0 }
        return records
    }

    /// The working directory, for a query.
    private static var directory: String { PercentEncoding.encode(FileManager.default.currentDirectoryPath) }

    /// Waits until the service's lock is free. The socket may be that of systemd, which starts the service when a process
    /// connects.
    func waitForEnd() async throws {
        let deadline = ContinuousClock.now + .seconds(10)
        while !ServiceLock.isFree(self.paths.lock) {
            guard ContinuousClock.now < deadline else { throw ServiceFailure("the service has not ended after 10 s") }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    // MARK: Events

    /// The lines of data of the service's events, until it ends or `body` returns true.
    ///
    /// - Parameter ids: The entries that count.
    func events(of ids: [String], after event: String, _ body: (ServiceEvent) async throws -> Bool) async throws {
        let path = "/events?ids=\(ids.joined(separator: ","))&after=\(event)"
        let response = try await self.response(.GET, path, body: nil, .hours(24 * 365))
        var parser = ServiceEventParser()
        do {
            for try await bytes in response.body {
                for event in parser.events(in: bytes.readableBytesView) where try await body(event) { return }
            }
        } catch let error as DownloadError {
            throw error
        } catch {
            throw Self.failure(error)
        }
    }
}

/// One server-sent event of the service.
struct ServiceEvent: Hashable, Sendable {
    var id: String?
    var name = ""
    var data = ""
}

/// Reads server-sent events.
struct ServiceEventParser {
    private var line: [UInt8] = []
    private var event = ServiceEvent()

    /// The events that these bytes complete.
    mutating func events(in bytes: some Sequence<UInt8>) -> [ServiceEvent] {
        var events: [ServiceEvent] = []
        for byte in bytes {
            guard byte == UInt8(ascii: "\n") else {
                self.line.append(byte)
                continue
            }
            if self.line.isEmpty {
                if !self.event.name.isEmpty { events.append(self.event) }
                self.event = ServiceEvent()
            } else {
                let text = String(decoding: self.line, as: UTF8.self)
                let parts = text.split(separator: ": ", maxSplits: 1)
                switch parts.first {
                case "id" where parts.count == 2: self.event.id = String(parts[1])
                case "event" where parts.count == 2: self.event.name = String(parts[1])
                case "data" where parts.count == 2: self.event.data = String(parts[1])
                default: break
                }
            }
            self.line.removeAll(keepingCapacity: true)
        }
        return events
    }
}

extension DownloadError {
    /// The error that the service reports.
    init(_ failure: EntryRecord.Failure) {
        self.init(
            Code(rawValue: failure.code), failure.message, hint: failure.hint, status: failure.status)
    }
}
