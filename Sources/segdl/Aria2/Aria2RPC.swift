import SegmentedDownload
import SegmentedDownloadCore
import SegmentedDownloadService

/// aria2's JSON-RPC interface, for front-ends that are written for aria2 (https://aria2.github.io/manual/en/html/aria2c.html#rpc-interface).
///
/// It translates calls to ``QueueControl``. Names, types and error texts are those of aria2 1.36.
struct Aria2RPC: Sendable {
    /// The answer to a message.
    struct Answer: Sendable {
        let bytes: [UInt8]
        /// The code of the error, unless the message is a batch.
        var errorCode: Int?
        /// Whether a call had the secret.
        var isAuthorized = false
    }

    /// What the calls of one message have in common.
    private struct Message {
        /// Whether a call had the secret.
        var isAuthorized = false
        /// The methods without a secret that were called. Each is answered once, because their answers are long.
        var openCalls: Set<String> = []
        /// Whether a call had a wrong secret. Later calls of the message are refused unseen, so that one message cannot try
        /// many secrets.
        var isRefused = false
        /// The number of values in the answers so far.
        var values = 0
    }

    typealias Method = @Sendable (Aria2RPC, RPCParameters) async throws -> RPCValue

    let control: QueueControl
    let events: EventLog
    let session: String
    let stop: @Sendable () -> Void
    private let secret: [UInt8]

    /// 500 ms: two guesses per second and connection.
    private static let refusalDelay: Duration = .milliseconds(500)
    /// 1,000,000 values, some 50 MB, in one answer. A message of 1 MiB could ask for a thousand times that.
    private static let valuesMax = 1_000_000

    /// - Parameters:
    ///   - secret: The secret of all clients. If it is empty, every call is refused.
    ///   - session: Identifies this run of the service.
    ///   - stop: Ends the service.
    init(
        control: QueueControl, events: EventLog, secret: String, session: String, stop: @escaping @Sendable () -> Void
    ) {
        self.control = control
        self.events = events
        self.secret = Array(secret.utf8)
        self.session = session
        self.stop = stop
    }

    // MARK: Messages

    /// Answers a message: a request, or a batch of requests.
    ///
    /// - Parameter body: The body of an HTTP request, or a text of a WebSocket.
    func answer(_ body: [UInt8]) async -> Answer {
        var message = Message()
        let answer: RPCValue
        switch RPCValue(parsing: body) {
        case .object(let request)?: answer = await self.answer(to: request, in: &message)
        case .array(let requests)?:
            var answers: [RPCValue] = []
            // As in aria2, other values are skipped.
            for case .object(let request) in requests { answers.append(await self.answer(to: request, in: &message)) }
            answer = .array(answers)
        case .null?, .bool?, .int?, .double?, .string?: answer = Self.answer(.null, .failure(.invalidRequest))
        case nil: answer = Self.answer(.null, .failure(.parse))
        }
        guard let bytes = answer.bytes else {
            return Answer(
                bytes: Array(#"{"error":{"code":1,"message":"internal error"},"id":null,"jsonrpc":"2.0"}"#.utf8),
                errorCode: 1)
        }
        return Answer(bytes: bytes, errorCode: Self.errorCode(of: answer), isAuthorized: message.isAuthorized)
    }

    private static func errorCode(of answer: RPCValue) -> Int? {
        guard case .object(let answer) = answer, case .object(let error)? = answer["error"] else { return nil }
        return error["code"]?.integer
    }

    private func answer(to request: [String: RPCValue], in message: inout Message) async -> RPCValue {
        // As in aria2, a notification, which has no id, is invalid.
        guard let id = request["id"] else { return Self.answer(.null, .failure(.invalidRequest)) }
        guard case .string(let name)? = request["method"] else { return Self.answer(id, .failure(.invalidRequest)) }
        switch request["params"] {
        case nil: return Self.answer(id, await self.result(of: name, [], in: &message))
        case .array(let values)?: return Self.answer(id, await self.result(of: name, values, in: &message))
        default: return Self.answer(id, .failure(.invalidParameters))
        }
    }

    private static func answer(_ id: RPCValue, _ result: Result<RPCValue, RPCError>) -> RPCValue {
        let (key, value) =
            switch result {
            case .success(let value): ("result", value)
            case .failure(let error): ("error", error.value)
            }
        return .object(["id": id, "jsonrpc": .string("2.0"), key: value])
    }

    // MARK: Calls

    private func result(
        of name: String, _ values: [RPCValue], in message: inout Message
    ) async -> Result<RPCValue, RPCError> {
        guard name != Self.multicall else { return await self.results(of: values, in: &message) }
        var values = values
        let token = Self.removeToken(from: &values)
        if Self.openMethods.contains(name) {
            guard message.openCalls.insert(name).inserted else {
                return .failure(RPCError("\(name) is answered once in a message"))
            }
        } else {
            guard await self.isAuthorized(token, in: &message) else { return .failure(.unauthorized) }
        }
        guard let method = Self.methods[name] else {
            return .failure(RPCError("No such method: \(name.printable(limit: 64))"))
        }
        guard message.values <= Self.valuesMax else {
            return .failure(RPCError("the answer would be too long: make fewer calls in one message"))
        }
        // The client is gone, or its time is over.
        guard !Task.isCancelled else { return .failure(RPCError("cancelled")) }
        do {
            let value = try await method(self, RPCParameters(values: values))
            message.values += value.count
            return .success(value)
        } catch {
            return .failure(RPCError(error))
        }
    }

    /// Makes the calls of a `system.multicall`. It has no token: each call has one.
    private func results(of values: [RPCValue], in message: inout Message) async -> Result<RPCValue, RPCError> {
        do throws(RPCError) {
            var results: [RPCValue] = []
            for call in try RPCParameters(values: values).array(0) {
                switch await self.result(of: call, in: &message) {
                case .success(let value): results.append(.array([value]))
                case .failure(let error): results.append(error.value)
                }
            }
            return .success(.array(results))
        } catch {
            return .failure(error)
        }
    }

    private func result(of call: RPCValue, in message: inout Message) async -> Result<RPCValue, RPCError> {
        guard case .object(let call) = call else { return .failure(RPCError("system.multicall expected struct.")) }
        guard case .string(let name)? = call["methodName"] else { return .failure(RPCError("Missing methodName.")) }
        guard name != Self.multicall else { return .failure(RPCError("Recursive system.multicall forbidden.")) }
        let values: [RPCValue] = if case .array(let values)? = call["params"] { values } else { [] }
        return await self.result(of: name, values, in: &message)
    }

    // MARK: The secret

    /// Removes the token, the first parameter `token:SECRET`.
    private static func removeToken(from values: inout [RPCValue]) -> [UInt8]? {
        guard case .string(let text)? = values.first, text.utf8.starts(with: "token:".utf8) else { return nil }
        values.removeFirst()
        return Array(text.utf8.dropFirst("token:".utf8.count))
    }

    private func isAuthorized(_ token: [UInt8]?, in message: inout Message) async -> Bool {
        guard !message.isRefused else { return false }
        if Self.isEqual(token ?? [], self.secret) {
            message.isAuthorized = true
            return true
        }
        message.isRefused = true
        try? await Task.sleep(for: Self.refusalDelay)
        return false
    }

    /// Whether a token is the secret. The time depends on the token's length only.
    static func isEqual(_ token: [UInt8], _ secret: [UInt8]) -> Bool {
        guard !secret.isEmpty else { return false }
        var difference: UInt8 = token.count == secret.count ? 0 : 1
        for index in token.indices { difference |= token[index] ^ secret[index % secret.count] }
        return difference == 0
    }
}
