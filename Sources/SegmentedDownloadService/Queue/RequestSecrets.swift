import HTTPTypes
import SegmentedDownload

/// The secrets of a queued request. They are stored in a table of their own, and deleted with the entry.
struct RequestSecrets: Codable, Hashable, Sendable {
    private struct Field: Codable, Hashable {
        let name: String
        let value: String
    }

    private struct User: Codable, Hashable {
        let name: String
        let password: String
    }

    private let fields: [Field]
    private let user: User?
    private let token: String?
    /// The user name and password of each source's URL, by the URL.
    private let sources: [String: User]

    /// None.
    init() { (self.fields, self.user, self.token, self.sources) = ([], nil, nil, [:]) }

    init(_ request: DownloadRequest) {
        self.fields = request.fields.map { Field(name: $0.name.rawName, value: $0.value) }
        switch request.credentials {
        case .basic(let name, let password): (self.user, self.token) = (User(name: name, password: password), nil)
        case .bearer(let token): (self.user, self.token) = (nil, token)
        case nil: (self.user, self.token) = (nil, nil)
        }
        var sources: [String: User] = [:]
        for source in [request.source] + request.mirrors {
            guard case .basic(let name, let password)? = source.credentials else { continue }
            sources[source.string] = User(name: name, password: password)
        }
        self.sources = sources
    }

    var isEmpty: Bool { self.fields.isEmpty && self.user == nil && self.token == nil && self.sources.isEmpty }

    /// Adds the secrets to the request that was recorded without them.
    func complete(_ request: inout DownloadRequest) {
        for field in self.fields {
            guard let name = HTTPField.Name(field.name) else { continue }
            request.fields.append(HTTPField(name: name, value: field.value))
        }
        request.credentials =
            self.user.map { .basic(user: $0.name, password: $0.password) } ?? self.token.map { .bearer(token: $0) }
        request.source = self.completed(request.source)
        request.mirrors = request.mirrors.map { self.completed($0) }
        request.foreignSources = Set(request.foreignSources.map { self.completed($0) })
    }

    private func completed(_ source: SourceURL) -> SourceURL {
        self.sources[source.string].map { source.with(.basic(user: $0.name, password: $0.password)) } ?? source
    }
}
