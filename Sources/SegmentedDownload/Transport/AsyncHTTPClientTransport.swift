import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
package import SegmentedDownloadCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The real network: AsyncHTTPClient over HTTP/1.1, tuned for large bodies.
///
/// One event loop and a large receive buffer reach the speed of a plain `recv` loop; the figures are in `Design.md`.
package struct AsyncHTTPClientTransport: HTTPTransport {
    package struct Configuration: Hashable, Sendable {
        package var connectTimeout: Duration = .seconds(15)
        /// A PEM file with the authorities to trust instead of the system's.
        package var certificateAuthorityFile: String?
        /// Whether certificates are checked.
        package var verifiesCertificates = true
        /// Connections kept per host: more than any budget, which alone decides and may be raised while all runs.
        package var connectionsPerHost = 1 << 16
        /// Which interfaces may be used.
        package var network = NetworkPolicy()

        package init() {}
    }

    private let client: HTTPClient
    private let loops: MultiThreadedEventLoopGroup
    private let buffers: ReceiveBuffers
    private let connections: ConnectionRegister

    /// Hands a transport to `body` and shuts it down when that returns.
    package static func withTransport<Answer: Sendable>(
        _ configuration: Configuration = Configuration(),
        _ body: (AsyncHTTPClientTransport) async throws -> Answer
    ) async throws -> Answer {
        let tls = try Self.tlsConfiguration(configuration)
        var settings = HTTPClient.Configuration(tlsConfiguration: tls)
        settings.redirectConfiguration = .disallow
        settings.httpVersion = .http1Only
        settings.decompression = .disabled
        settings.timeout = .init(connect: .nanoseconds(configuration.connectTimeout.inNanoseconds), read: nil)
        settings.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = configuration.connectionsPerHost
        settings.connectionPool.retryConnectionEstablishment = false
        let buffers = ReceiveBuffers()
        let connections = ConnectionRegister()
        connections.obey(configuration.network)
        settings.http1_1ConnectionDebugInitializer = { channel in
            do {
                try connections.admit(channel)
            } catch {
                return channel.eventLoop.makeFailedFuture(error)
            }
            let isTLS = (try? channel.pipeline.syncOperations.handler(type: NIOSSLClientHandler.self)) != nil
            let allocator = buffers.take(isTLS: isTLS)
            channel.closeFuture.whenComplete { _ in buffers.giveBack() }
            return channel.setOption(.recvAllocator, value: allocator).flatMap {
                channel.setOption(.maxMessagesPerRead, value: 1)
            }
        }
        let loops = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let client = HTTPClient(eventLoopGroupProvider: .shared(loops), configuration: settings)
        let result: Result<Answer, any Error>
        do {
            result = .success(
                try await body(
                    AsyncHTTPClientTransport(
                        client: client, loops: loops, buffers: buffers, connections: connections)))
        } catch {
            result = .failure(error)
        }
        await Self.shutDown(client, loops)
        return try result.get()
    }

    /// 200 ms: idle connections are closed long before; whoever pressed Ctrl-C has a second.
    private static let shutdownPatience: TimeAmount = .milliseconds(200)

    /// Closes the connections, without waiting for those that are still being made: the client cannot break these off,
    /// and they may take until the connect timeout. What is left ends by itself.
    private static func shutDown(_ client: HTTPClient, _ loops: MultiThreadedEventLoopGroup) async {
        let isOver = Latch()
        await withCheckedContinuation { continuation in
            let resume: @Sendable () -> Void = {
                if isOver.raise() { continuation.resume() }
            }
            _ = loops.next().scheduleTask(in: Self.shutdownPatience, resume)
            client.shutdown { _ in
                loops.shutdownGracefully { _ in resume() }
            }
        }
    }

    private init(
        client: HTTPClient, loops: MultiThreadedEventLoopGroup, buffers: ReceiveBuffers, connections: ConnectionRegister
    ) {
        self.client = client
        self.loops = loops
        self.buffers = buffers
        self.connections = connections
    }

    package func obey(_ policy: NetworkPolicy) {
        self.connections.obey(policy)
    }

    package func limit(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {
        self.buffers.update(limits, for: owner)
    }

    private static func tlsConfiguration(_ configuration: Configuration) throws -> TLSConfiguration {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        // A connection we close has more to say than we want to hear: its farewell would be waited for, for seconds.
        tls.shutdownTimeout = .zero
        if !configuration.verifiesCertificates {
            tls.certificateVerification = .none
        }
        if let file = configuration.certificateAuthorityFile {
            do {
                tls.trustRoots = .certificates(try NIOSSLCertificate.fromPEMFile(file))
            } catch {
                throw Failure(.usage, "\(file.printable) holds no certificates in PEM form")
            }
        }
        return tls
    }

    package func withResponse<Answer: Sendable>(
        to request: TransportRequest,
        _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
    ) async throws -> Answer {
        var message = HTTPClientRequest(url: request.url.string)
        message.localAddress = try self.connections.localAddress(to: request.url.origin.host)
        for field in request.fields {
            message.headers.add(name: field.name.rawName, value: field.value)
        }
        let response: HTTPClientResponse
        do {
            response = try await self.client.execute(message, deadline: .distantFuture)
        } catch {
            if await self.isStalledHandshake(error, request.url) {
                throw Failure(.tls, "\(request.url.host): no TLS handshake in time", isTransient: true)
            }
            throw Self.failure(error, host: request.url.host)
        }
        try Self.checkSize(of: response, host: request.url.host)
        let body = Body(iterator: response.body.makeAsyncIterator(), host: request.url.host)
        return try await consume(Self.head(response), body)
    }

    /// As much as servers and proxies take themselves; more is no description of a file.
    private static let headLengthMax = 64 << 10
    private static let headFieldsMax = 200

    /// The client has a bound of its own, which is to protect memory and lies higher.
    private static func checkSize(of response: HTTPClientResponse, host: String) throws {
        // A colon, a space and a line's end belong to every field.
        let length = response.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        guard length <= Self.headLengthMax, response.headers.count <= Self.headFieldsMax else {
            throw Failure(
                .protocol,
                "\(host) sent a head of \(response.headers.count) fields and \(length) bytes, more than "
                    + "\(Self.headFieldsMax) and \(Self.headLengthMax)")
        }
    }

    private static func head(_ response: HTTPClientResponse) -> ResponseHead {
        var fields = HTTPFields()
        for (name, value) in response.headers {
            // A name that is no token cannot be one we look for.
            guard let name = HTTPField.Name(name) else { continue }
            fields.append(HTTPField(name: name, value: value))
        }
        return ResponseHead(status: Int(response.status.code), fields: fields)
    }

    private final class Body: ResponseBody {
        // Used by the one task that reads the body; the client's iterator cannot say so itself.
        nonisolated(unsafe) private var iterator: HTTPClientResponse.Body.AsyncIterator
        private let host: String

        init(iterator: HTTPClientResponse.Body.AsyncIterator, host: String) {
            self.iterator = iterator
            self.host = host
        }

        func next() async throws -> (any BodyChunk)? {
            do {
                return try await self.iterator.next()
            } catch {
                throw AsyncHTTPClientTransport.failure(error, host: self.host)
            }
        }
    }

    // MARK: What errors mean

    /// 1 s: whoever can be reached answers sooner.
    private static let reachPatience: TimeAmount = .seconds(1)

    /// The client has one limit for connection and handshake, and does not say which took too long: whether the host can be
    /// connected to is looked up.
    private func isStalledHandshake(_ error: any Error, _ url: SourceURL) async -> Bool {
        guard error as? HTTPClientError == .connectTimeout, url.origin.scheme == "https" else { return false }
        let host = url.origin.host.hasPrefix("[") ? String(url.origin.host.dropFirst().dropLast()) : url.origin.host
        let bootstrap = ClientBootstrap(group: self.loops).connectTimeout(Self.reachPatience)
        guard let channel = try? await bootstrap.connect(host: host, port: url.origin.port).get() else { return false }
        channel.close(promise: nil)
        return true
    }

    private static func failure(_ error: any Error, host: String) -> any Error {
        switch error {
        case is CancellationError, is Failure: return error
        case let error as HTTPClientError where error == .cancelled: return CancellationError()
        case let error as NIOConnectionError: return Self.connectionFailure(error)
        case let error as NIOSSLError: return Self.tlsFailure(error, host: host)
        case let error as NIOSSLExtraError:
            return Failure(
                .tls, "\(host): the certificate is for another host (\("\(error)".printable))", hint: Self.trustHint)
        case let error as BoringSSLError:
            return Failure(.tls, "\(host): \("\(error)".printable)")
        case let error as HTTPParserError where error == .invalidEOFState:
            return Failure(
                .network, "\(host) closed the connection before the response was complete", isTransient: true)
        case let error as HTTPParserError:
            return Failure(.protocol, "\(host) does not speak HTTP (\("\(error)".printable))")
        case let error as IOError:
            let isMade = ![ECONNREFUSED, ENETUNREACH, EHOSTUNREACH].contains(error.errnoCode)
            return Failure(
                .network, "\(host): \(isMade ? "the connection broke" : "no connection") (\(Self.reason(error)))",
                isTransient: true,
                errno: error.errnoCode)
        case ChannelError.connectTimeout(_):
            return Failure(.network, "\(host): no connection in time", isTransient: true)
        case let error as HTTPClientError: return Self.clientFailure(error, host: host)
        default:
            return Failure(.network, "\(host): \("\(error)".printable)", isTransient: true)
        }
    }

    private static let trustHint = "Trust its authority with --cacert FILE"

    private static func clientFailure(_ error: HTTPClientError, host: String) -> Failure {
        switch error {
        case .connectTimeout: Failure(.network, "\(host): no connection in time", isTransient: true)
        case .tlsHandshakeTimeout: Failure(.tls, "\(host): no TLS handshake in time", isTransient: true)
        case .remoteConnectionClosed:
            Failure(.network, "\(host) closed the connection before the response was complete", isTransient: true)
        default: Failure(.network, "\(host): \(error.shortDescription.printable)", isTransient: true)
        }
    }

    private static func connectionFailure(_ error: NIOConnectionError) -> Failure {
        let host = error.host.printable
        if error.connectionErrors.isEmpty {
            return Failure(.network, "\(host) was not found (name lookup failed)", isTransient: true)
        }
        let reasons = error.connectionErrors.map { failure in
            (failure.error as? IOError).map { Self.reason($0) } ?? "no connection in time"
        }
        let distinct = reasons.reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        return Failure(
            .network, "\(host) port \(error.port): \(distinct.joined(separator: ", "))", isTransient: true,
            errno: (error.connectionErrors.first?.error as? IOError)?.errnoCode)
    }

    /// The system's words within `connect(descriptor:addr:size:): Connection refused (errno: 111)`.
    private static func reason(_ error: IOError) -> String {
        let words = error.description.split(separator: ": ").first { $0.contains(" (errno") || $0.contains(") (errno") }
        guard let words, let end = words.firstRange(of: " (errno") else { return error.description.printable }
        return String(words[..<end.lowerBound]).lowercased().filter { $0 != "(" && $0 != ")" }.printable
    }

    private static func tlsFailure(_ error: NIOSSLError, host: String) -> Failure {
        switch error {
        case .uncleanShutdown:
            return Failure(
                .network, "\(host) closed the connection before the response was complete", isTransient: true)
        case .handshakeFailed(.sslError(let stack)):
            let text = "\(stack)"
            guard !text.contains("EOF during handshake") else {
                return Failure(
                    .tls, "\(host) broke off the TLS handshake", hint: "If it speaks plain HTTP there, write http://",
                    isTransient: true)
            }
            let why = text.contains("CERTIFICATE_VERIFY_FAILED") ? "the certificate is not trusted" : text.printable
            return Failure(.tls, "\(host): \(why)", hint: Self.trustHint)
        case .handshakeFailed(.syscallError), .handshakeFailed(.zeroReturn):
            return Failure(.tls, "\(host) broke off the TLS handshake", isTransient: true)
        default:
            return Failure(.tls, "\(host): \("\(error)".printable)", hint: Self.trustHint)
        }
    }
}

extension ByteBuffer: BodyChunk {
    package var count: Int { self.readableBytes }

    package func withBytes<Answer>(_ body: (UnsafeRawBufferPointer) throws -> Answer) rethrows -> Answer {
        try self.withUnsafeReadableBytes(body)
    }
}

extension Duration {
    fileprivate var inNanoseconds: Int64 {
        self.components.seconds * 1_000_000_000 + self.components.attoseconds / 1_000_000_000
    }
}
