import HTTPTypes
import Hummingbird

/// Refuses requests that ``WebPolicy`` does not allow, and those of unknown types and sizes.
struct WebGuard: RouterMiddleware {
    let policy: WebPolicy

    func handle(
        _ request: Request, context: ServiceContext,
        next: @concurrent (Request, ServiceContext) async throws -> Response
    ) async throws -> Response {
        let origin = request.headers[.origin]
        if let refusal = self.policy.refusal(host: request.head.authority, origin: origin) {
            return Response(
                status: .forbidden, headers: Self.fields, body: .init(byteBuffer: ByteBuffer(string: refusal)))
        }
        let isForeign = self.policy.allows(origin: origin)
        var response: Response
        if request.method == .options, isForeign {
            response = Response(status: .noContent)
            response.headers[.accessControlAllowMethods] = "GET, POST, PATCH"
            response.headers[.accessControlAllowHeaders] = "Content-Type, Authorization, Last-Event-ID"
        } else if let problem = Self.problem(with: request) {
            response = Response(status: problem)
        } else {
            response = try await next(request, context)
        }
        for field in Self.fields { response.headers[field.name] = field.value }
        if isForeign, let origin {
            response.headers[.accessControlAllowOrigin] = origin
            response.headers[.vary] = "Origin"
        }
        return response
    }

    /// 1 MiB: a few thousand URLs.
    static let lengthMax = 1 << 20

    private static func problem(with request: Request) -> HTTPResponse.Status? {
        guard request.method != .get, request.method != .head else { return nil }
        if let length = request.headers[.contentLength].flatMap({ Int($0) }), length > Self.lengthMax {
            return .contentTooLarge
        }
        // A page could send a body without a type, but not without its origin.
        guard let type = request.headers[.contentType] else {
            return request.headers[.origin] == nil ? nil : .unsupportedMediaType
        }
        let essence = type.prefix { $0 != ";" && $0 != " " }.lowercased()
        return ["application/json", "application/json-rpc"].contains(essence) ? nil : .unsupportedMediaType
    }

    /// Of every answer. Nothing is loaded from elsewhere, and no other page shows this one.
    private static let fields: HTTPFields = [
        .contentSecurityPolicy:
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        .xContentTypeOptions: "nosniff",
        .referrerPolicy: "no-referrer",
        .crossOriginResourcePolicy: "same-origin",
        .cacheControl: "no-store",
    ]
}

extension HTTPField.Name {
    private static func known(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else { preconditionFailure("\(name) is no name of a field") }
        return name
    }

    fileprivate static let referrerPolicy = Self.known("Referrer-Policy")
    fileprivate static let crossOriginResourcePolicy = Self.known("Cross-Origin-Resource-Policy")
}

/// Answers only requests with the secret, as `Authorization: Bearer SECRET`.
struct WebSecret: RouterMiddleware {
    let secret: String

    /// 500 ms: two guesses per second and connection.
    private static let delay: Duration = .milliseconds(500)

    func handle(
        _ request: Request, context: ServiceContext,
        next: @concurrent (Request, ServiceContext) async throws -> Response
    ) async throws -> Response {
        let given = request.headers[.authorization].flatMap { $0.hasPrefix("Bearer ") ? $0.dropFirst(7) : nil }
        guard let given, Aria2RPC.isEqual(Array(given.utf8), Array(self.secret.utf8)) else {
            try await Task.sleep(for: Self.delay)
            return Response(status: .unauthorized, headers: [.wwwAuthenticate: "Bearer"])
        }
        return try await next(request, context)
    }
}
