import HTTPTypes
import SegmentedDownloadCore

/// A server with one file, and the faults it is configured with.
struct ModelOrigin {
    enum Ranges: Hashable { case always, never, sometimes }
    enum Validation: Hashable {
        case strong, weak, date, none
        /// A tag without quotation marks, two fields with a tag, an invalid date. Only where files are told apart.
        case unquoted, repeated, unparsable
    }

    /// The file's length in each version so far.
    var lengths: [Int64]
    var ranges = Ranges.always
    var validation = Validation.strong
    /// Whether a 200 states its length.
    var tellsLength = true
    /// The longest part the server sends for a range.
    var rangeLengthMax: Int64 = .max
    var dislikesIfRange = false
    /// Which of several files of the same length it serves.
    var file = 0
    /// Which of several tags for the same version it sends.
    var tag = 0

    var content: ModelContent { ModelContent(file: self.file, version: self.version) }
    var version: Int { self.lengths.count - 1 }
    var length: Int64 { self.lengths[self.version] }
    var entityTag: String? {
        switch self.validation {
        case .strong: "\"\(self.opaque)\""
        case .weak: "W/\"\(self.opaque)\""
        case .date, .none, .unquoted, .repeated, .unparsable: nil
        }
    }

    /// Whether every answer shows a change of version; only then the version changes.
    var tellsVersions: Bool {
        switch self.validation {
        case .strong, .unquoted, .repeated, .unparsable: true
        case .weak, .date, .none: false
        }
    }

    private var opaque: String { "v\(self.version)" + (self.tag == 0 ? "" : "t\(self.tag)") }

    private var validators: HTTPFields {
        var fields = HTTPFields()
        switch self.validation {
        case .strong, .weak: fields[.eTag] = self.entityTag
        case .date: fields[.lastModified] = "Tue, 14 Nov 2023 22:1\(3 + self.tag):2\(self.version % 10) GMT"
        case .none: break
        case .unquoted: fields[.eTag] = self.opaque
        case .repeated: fields[values: .eTag] = ["\"\(self.opaque)\"", "\"constant\""]
        case .unparsable: fields[.lastModified] = "yesterday, \(self.opaque)"
        }
        return fields
    }

    struct Answer {
        let head: ResponseHead
        var body: ModelConnection.Body?
    }

    func answer(_ request: RangeRequest, doesRanges: Bool) -> Answer {
        var fields = self.validators
        if let tag = request.ifNoneMatchFieldValue, tag == self.entityTag {
            return Answer(head: ResponseHead(status: 304, fields: fields))
        }
        let condition = request.ifRangeFieldValue
        let isMet = condition == nil || (condition == self.entityTag && !self.dislikesIfRange)
        guard request.isRanged, doesRanges, isMet else {
            if self.tellsLength { fields[.contentLength] = "\(self.length)" }
            return Answer(
                head: ResponseHead(status: 200, fields: fields),
                body: .init(content: self.content, start: 0, end: self.length))
        }
        guard request.lowerBound < self.length else {
            fields[.contentRange] = "bytes */\(self.length)"
            return Answer(head: ResponseHead(status: 416, fields: fields))
        }
        let end = min(request.upperBound ?? .max, self.length, self.end(from: request.lowerBound))
        fields[.contentRange] = "bytes \(request.lowerBound)-\(end - 1)/\(self.length)"
        fields[.contentLength] = "\(end - request.lowerBound)"
        return Answer(
            head: ResponseHead(status: 206, fields: fields),
            body: .init(content: self.content, start: request.lowerBound, end: end))
    }

    private func end(from lowerBound: Int64) -> Int64 {
        let (end, overflow) = lowerBound.addingReportingOverflow(self.rangeLengthMax)
        return overflow ? .max : end
    }
}
