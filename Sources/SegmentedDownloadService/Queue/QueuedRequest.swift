package import SegmentedDownload

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The request of an entry. It never changes, so all copies of the entry's record share it.
package final class QueuedRequest: Hashable, Sendable {
    /// Without its id, fields and credentials.
    package let request: DownloadRequest
    let secrets: RequestSecrets
    /// The request as the database stores it.
    let text: String

    /// - Throws: ``DownloadError`` with code `usage` if a number of the request cannot be stored.
    convenience init(_ request: DownloadRequest, path: FilePath, hasName: Bool) throws(DownloadError) {
        let recorded = RecordedRequest(request, path: path.string, hasName: hasName)
        let text: String
        do {
            text = try recorded.jsonText
        } catch {
            throw DownloadError(.usage, "the request cannot be stored: \(error)")
        }
        try self.init(text: text, recorded: recorded, secrets: RequestSecrets(request))
    }

    /// - Throws: `DecodingError`, or ``DownloadError`` with code `usage`, if the text was altered.
    convenience init(text: String, secrets: RequestSecrets) throws {
        try self.init(text: text, recorded: try RecordedRequest(jsonText: text), secrets: secrets)
    }

    private init(text: String, recorded: RecordedRequest, secrets: RequestSecrets) throws(DownloadError) {
        self.text = text
        self.request = try recorded.request()
        self.secrets = secrets
    }

    /// The request after its download has begun: the file has a name, and is not begun anew after a restart.
    ///
    /// If a kill comes between placing the file and recording its end, the download must recognise the file as its own.
    func begun(at path: FilePath) throws(DownloadError) -> QueuedRequest {
        var request = self.complete(id: nil)
        request.options = request.options.resuming
        if [.rename, .fail].contains(request.ifExists) { request.ifExists = .verify }
        return try QueuedRequest(request, path: path, hasName: true)
    }

    /// The request in place of another one, with which the download has begun.
    ///
    /// A file at the destination may be that of the other request, so it is not kept without a proof, unless the change
    /// asks for that.
    func restarting(after old: QueuedRequest) -> QueuedRequest {
        guard let path = self.request.destination.path else { return self }
        let (new, before) = (self.complete(id: nil), old.complete(id: nil))
        var request = new
        if new.ifExists == before.ifExists, [.skip, .update, .newer].contains(new.ifExists) {
            request.ifExists = .verify
        }
        // The server may have another file for other fields, and the file of these is wanted.
        if new.fields != before.fields || new.credentials != before.credentials { request.options.onChange = .restart }
        guard request != new else { return self }
        return (try? QueuedRequest(request, path: path, hasName: false)) ?? self
    }

    /// See ``DownloadRequest/continues(as:)``.
    func continues(as other: QueuedRequest) -> Bool { self.complete(id: nil).continues(as: other.complete(id: nil)) }

    /// The directory of its file.
    var directory: FilePath? { self.request.destination.directory }

    /// The request with its secrets.
    func complete(id: QueueEntry.ID?) -> DownloadRequest {
        var request = self.request
        self.secrets.complete(&request)
        request.id = id?.download
        return request
    }

    package static func == (left: QueuedRequest, right: QueuedRequest) -> Bool {
        left.text == right.text && left.secrets == right.secrets
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(self.text) }
}

extension DownloadRequest {
    /// Whether a download that was started with this request may end as one of the other: they differ at most in how fast
    /// the file is fetched, in the caller's own values, and in mirrors that only the other one has.
    func continues(as other: DownloadRequest) -> Bool {
        guard Set(self.mirrors).isSubset(of: other.mirrors) else { return false }
        var request = self
        request.mirrors = other.mirrors
        request.userInfo = other.userInfo
        request.priority = other.priority
        request.segments = other.segments
        request.bytesPerSecond = other.bytesPerSecond
        return request == other
    }
}

extension Encodable {
    /// The keys are sorted, so that equal values have equal texts.
    var jsonText: String {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return String(decoding: try encoder.encode(self), as: UTF8.self)
        }
    }
}

extension Decodable {
    init(jsonText text: String) throws { self = try JSONDecoder().decode(Self.self, from: Data(text.utf8)) }
}
