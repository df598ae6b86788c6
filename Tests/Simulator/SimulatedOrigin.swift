import HTTPTypes
package import SegmentedDownload
package import SegmentedDownloadCore

/// An origin with one file: its answers follow from its versions and from the faults it is configured with.
package struct SimulatedOrigin {
    package enum Identity: CaseIterable {
        case strong, weak, date, none

        /// The cases drawn at random; `malformed` is drawn apart from them.
        package static let allCases: [Identity] = [.strong, .weak, .date, .none]

        /// A tag without quotation marks.
        case malformed
        /// One strong tag for all versions, as of a server that makes it from the length alone, and a date for each.
        case sharedTag
    }

    package struct Version: Sendable {
        package let number: Int
        package let bytes: [UInt8]
    }

    package struct Answer {
        package var head: ResponseHead
        /// Which bytes of which version the body has.
        package var version: Version
        package var body: Range<Int>
        /// Whether the message marks the end of its body, rather than the end of the connection.
        package var isFramed = true
        /// What the head and the trailers state about the whole file.
        package var stated: [ExpectedDigest] = []
        package var statedAfterwards: [ExpectedDigest] = []

        fileprivate var bytes: ArraySlice<UInt8> { self.version.bytes[self.body] }

        /// Replaces the body.
        fileprivate mutating func send(_ bytes: [UInt8]) {
            self.version = Version(number: self.version.number, bytes: bytes)
            self.body = bytes.indices
        }
    }

    /// How many of a thousand responses state digests, as SHA-256.
    package struct Digests: Sendable {
        /// Of the whole file, in the head (`Repr-Digest`).
        package var whole = 0
        /// Of the body, in the head (`Content-Digest`).
        package var content = 0
        /// Of the whole file, in the trailers of a part.
        package var trailing = 0
        /// How many of the digests of the whole file are of another file.
        package var wrong = 0
        /// How many of the bodies with a digest in the head are damaged on their way.
        package var damaged = 0

        package init() {}
    }

    /// Untrue heads that a client can detect. Bytes that differ from a consistent head cannot be detected.
    package enum Lie: CaseIterable {
        case otherStart, noContentRange, otherTotal, garbage, multipart, coded, whole, longer, shorter, unsatisfiable
        case otherLength
    }

    package var versions: [Version]
    /// A version that is served from a time on.
    package var versionLater: (since: Duration, version: Version)?
    package var identity = Identity.strong
    package var doesRanges = true
    package var tellsLength = true
    package var dislikesIfRange = false
    /// The statuses with which it refuses requests with `Range` and `If-Range` that it does not support; nil if it ignores the fields.
    package var rangeRefusal: Int?
    package var ifRangeRefusal: Int?
    /// Whether the source redirects to a URL that expires.
    package var redirects = false
    package var tokenLifetime = Duration.seconds(3600)

    /// Whether the token of the redirect's target is its query. Not drawn, so that the random numbers are those of earlier versions.
    var hasQueryToken: Bool { self.tokenLifetime.components.seconds.isMultiple(of: 3) }

    /// What the target answers once it has expired.
    var expiredStatus: Int {
        let statuses = [403, 400, 404, 401, 500]
        return statuses[Int(self.tokenLifetime.components.seconds) % statuses.count]
    }
    /// Whether it redirects to a path of its own that names the version.
    package var redirectsHome = false
    /// The number of nodes, each with a tag of its own for the same bytes.
    package var nodes = 1
    /// Whether different files share a tag: the odd mirror's file and the twin have the current version's.
    package var sharesTags = false
    /// Nil for an origin that states none.
    package var digests: Digests?
    /// Whether requests with the field ``variantField`` get the twin.
    package var hasVariants = false

    package static let variantField = HTTPField.Name("X-Variant")!

    package init(_ first: Version) {
        self.versions = [first]
    }

    package var current: Version { self.versions[self.versions.count - 1] }

    package func entityTag(of version: Version, node: Int = 0) -> String? {
        let opaque = "v\(version.number)" + (node == 0 ? "" : "n\(node)")
        return switch self.identity {
        case .strong: "\"\(opaque)\""
        case .weak: "W/\"\(opaque)\""
        case .malformed: opaque
        case .sharedTag: "\"all\""
        case .date, .none: nil
        }
    }

    private func lastModified(of version: Version) -> String? {
        self.identity == .date || self.identity == .sharedTag
            ? "Tue, 14 Nov 2023 22:13:\(10 + version.number % 50) GMT" : nil
    }

    /// The validators of the current version, as answers state them.
    var validator: Validator {
        Validator(
            tagFields: self.entityTag(of: self.current).map { [$0] } ?? [],
            dateFields: self.lastModified(of: self.current).map { [$0] } ?? [])
    }

    /// Another file that differs from a version in every byte and in nothing else.
    package func twin(of version: Version) -> Version {
        Version(number: version.number, bytes: version.bytes.map { ~$0 })
    }

    package func answer(_ request: TransportRequest, _ version: Version, node: Int = 0) -> Answer {
        var fields = HTTPFields()
        let own = self.entityTag(of: version, node: node)
        if let own { fields[.eTag] = own }
        if let date = self.lastModified(of: version) { fields[.lastModified] = date }
        if let tag = request.fields[.ifNoneMatch], tag == own {
            return Answer(head: ResponseHead(status: 304, fields: fields), version: version, body: 0..<0)
        }
        let condition = request.fields[.ifRange]
        let isMet = condition == nil || (condition == own && !self.dislikesIfRange)
        let refusal =
            condition != nil && self.dislikesIfRange
            ? self.ifRangeRefusal : request.fields[.range] != nil && !self.doesRanges ? self.rangeRefusal : nil
        if let refusal { return Answer(head: ResponseHead(status: refusal), version: version, body: 0..<0) }
        guard let range = request.fields[.range].flatMap(Self.range), self.doesRanges, isMet else {
            // Some servers promise what another one behind them does not do.
            if self.rangeRefusal ?? 0 >= 500 { fields[.acceptRanges] = "bytes" }
            if self.tellsLength { fields[.contentLength] = "\(version.bytes.count)" }
            return Answer(
                head: ResponseHead(status: 200, fields: fields), version: version, body: 0..<version.bytes.count)
        }
        guard range.lowerBound < version.bytes.count else {
            fields[.contentRange] = "bytes */\(version.bytes.count)"
            return Answer(head: ResponseHead(status: 416, fields: fields), version: version, body: 0..<0)
        }
        let end = min(range.upperBound, version.bytes.count)
        fields[.contentRange] = "bytes \(range.lowerBound)-\(end - 1)/\(version.bytes.count)"
        fields[.contentLength] = "\(end - range.lowerBound)"
        return Answer(
            head: ResponseHead(status: 206, fields: fields), version: version, body: range.lowerBound..<end)
    }

    private static func range(_ field: String) -> Range<Int>? {
        let parts = field.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard field.hasPrefix("bytes="), parts.count == 2, let first = Int(parts[0]) else { return nil }
        if parts[1].isEmpty { return first..<Int.max }
        return Int(parts[1]).map { first..<($0 + 1) }
    }

    /// Returns the same answer with an untrue head.
    package func distort(_ answer: Answer, _ lie: Lie, using generator: inout SplitMix64) -> Answer {
        guard answer.head.status == 206 else { return answer }
        var (answer, fields) = (answer, answer.head.fields)
        let (first, end, total) = (answer.body.lowerBound, answer.body.upperBound, answer.version.bytes.count)
        let shift = Int.random(in: 1...4096, using: &generator)
        switch lie {
        case .otherStart:
            // The body matches the head, which is not what was requested.
            let start = min(first + shift, end - 1)
            fields[.contentRange] = "bytes \(start)-\(end - 1)/\(total)"
            fields[.contentLength] = "\(end - start)"
            answer.body = start..<end
        case .noContentRange:
            // A body of the requested length, but from the file's beginning.
            fields[.contentRange] = nil
            answer.body = 0..<(end - first)
        case .otherTotal: fields[.contentRange] = "bytes \(first)-\(end - 1)/\(total + shift)"
        case .garbage: fields[.contentRange] = "bytes \(first)-\(end - 1)-\(total)"
        case .multipart:
            fields[.contentType] = "multipart/byteranges; boundary=x"
            fields[.contentRange] = nil
            fields[.contentLength] = nil
            fields[.transferEncoding] = "chunked"
            answer.send(Array("--x\r\nContent-Range: bytes \(first)-\(end - 1)/\(total)\r\n\r\n".utf8) + answer.bytes)
        case .coded where first > 0:
            fields[.contentEncoding] = "gzip"
            answer.send(answer.bytes.map { ~$0 })
        case .coded:
            // A body coded from its first byte on is another file, which segdl stores as sent.
            return answer
        case .whole:
            fields[.contentRange] = nil
            fields[.contentLength] = "\(total)"
            answer.body = 0..<total
            answer.head = ResponseHead(status: 200, fields: fields)
            return answer
        case .longer:
            let last = min(end + shift, total)
            fields[.contentRange] = "bytes \(first)-\(last - 1)/\(total)"
            fields[.contentLength] = "\(last - first)"
            answer.body = first..<last
        case .shorter:
            let last = max(end - shift, first + 1)
            fields[.contentRange] = "bytes \(first)-\(last - 1)/\(total)"
            fields[.contentLength] = "\(last - first)"
            answer.body = first..<last
        case .unsatisfiable:
            answer.body = 0..<0
            answer.head = ResponseHead(status: 416, fields: [:])
            return answer
        case .otherLength: fields[.contentLength] = "\(end - first + shift)"
        }
        answer.head = ResponseHead(status: 206, fields: fields)
        return answer
    }
}
