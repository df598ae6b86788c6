import Foundation
import Origin
import TestSupport
import Testing

/// A client of the service over TCP: of aria2's JSON-RPC, and of the web page's API.
struct RPCClient: Sendable {
    /// Why a call failed.
    struct Failure: Hashable {
        let code: Int
        let message: String
    }

    let port: Int
    let secret: String

    /// The answer to an HTTP request.
    func send(
        _ method: String, _ path: String, _ body: String = "", host: String? = nil, fields: [String] = [],
        type: String? = "application/json"
    ) async throws -> (status: Int?, text: String) {
        let own = [
            "Host: \(host ?? "127.0.0.1:\(self.port)")", "Connection: close", "Content-Length: \(body.utf8.count)",
        ]
        let lines = ["\(method) \(path) HTTP/1.1"] + own + (type.map { ["Content-Type: \($0)"] } ?? []) + fields
        let text = try await RawConnection.answer(
            to: Array((lines.joined(separator: "\r\n") + "\r\n\r\n" + body).utf8), port: self.port)
        return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) }, text)
    }

    /// The body of an HTTP answer.
    static func body(of text: String) -> String {
        text.split(separator: "\r\n\r\n", maxSplits: 1).last.map { String($0) } ?? ""
    }

    // MARK: Calls

    /// A call with the secret, as JSON.
    func message(of method: String, _ parameters: [Any], secret: String? = nil) throws -> String {
        let call: [String: Any] = [
            "jsonrpc": "2.0", "id": "1", "method": method,
            "params": ["token:\(secret ?? self.secret)"] + parameters,
        ]
        return String(decoding: try JSONSerialization.data(withJSONObject: call), as: UTF8.self)
    }

    /// The response to a call, with its `result` or `error`.
    func call(_ method: String, _ parameters: [Any], secret: String? = nil) async throws -> [String: Any] {
        let message = try self.message(of: method, parameters, secret: secret)
        let text = try await self.send("POST", "/jsonrpc", message).text
        let json = try JSONSerialization.jsonObject(with: Data(Self.body(of: text).utf8))
        return try #require(json as? [String: Any], "\(text)")
    }

    /// The message of a call's error; nil if it has a result.
    func message(_ method: String, _ parameters: Any...) async throws -> String? {
        (try await self.call(method, parameters)["error"] as? [String: Any])?["message"] as? String
    }

    /// The response to a message: to a call, or to a batch of calls.
    func response(to message: String) async throws -> JSON {
        try JSON(Self.body(of: try await self.send("POST", "/jsonrpc", message).text))
    }

    /// The result of a call.
    func result(_ method: String, _ parameters: Any...) async throws -> JSON {
        let response = try await self.response(to: try self.message(of: method, parameters))
        return try #require(response["result"], "\(method): \(response)")
    }

    /// The error of a call; nil if it has a result.
    func failure(_ method: String, _ parameters: Any...) async throws -> Failure? {
        Self.failure(in: try await self.response(to: try self.message(of: method, parameters)))
    }

    /// The error in a response; nil if it has a result.
    static func failure(in response: JSON) -> Failure? {
        guard let code = response["error"]?["code"]?.double, let message = response["error"]?["message"]?.text else {
            return nil
        }
        return Failure(code: Int(code), message: message)
    }
}

extension RPCClient {
    /// A client with the secret that the service has made.
    init(of service: Service) throws {
        let text = FileManager.default.contents(atPath: service.command.path("state/segdl/rpc-secret")) ?? Data()
        self.init(
            port: try #require(service.rpcPort),
            secret: String(decoding: text, as: UTF8.self).filter { !$0.isWhitespace })
    }

    /// Runs `body` with a client of a service, which saves files in the directory `files`, and an origin.
    static func run(
        _ options: [String] = [], _ body: @escaping @Sendable (RPCClient, Service, Origin) async throws -> Void
    ) async throws {
        try await withCommand { command in
            try await withOrigin { origin in
                let all = ["-d", command.path("files"), "--rpc-listen", "127.0.0.1:0"] + options
                let ending = try await Service.run(command, all) { service in
                    try await body(try RPCClient(of: service), service, origin)
                }
                #expect(ending.status == 0, "\(ending.errors)")
            }
        }
    }
}
