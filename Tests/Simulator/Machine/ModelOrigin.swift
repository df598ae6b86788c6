import HTTPTypes
import SegmentedDownloadCore

/// A server with one file, as honest as it is told to be.
struct ModelOrigin {
    enum Ranges: Hashable { case always, never, sometimes }
    enum Validation: Hashable { case strong, weak, date, none }

    /// The file's length in each version so far.
    var lengths: [Int64]
    var ranges = Ranges.always
    var validation = Validation.strong
    /// Whether a 200 says how long it is.
    var tellsLength = true
    /// Whether a range is answered to no more than so many bytes.
    var rangeLengthMax: Int64 = .max
    var dislikesIfRange = false

    var version: Int { self.lengths.count - 1 }
    var length: Int64 { self.lengths[self.version] }
    var entityTag: String? {
        switch self.validation {
        case .strong: "\"v\(self.version)\""
        case .weak: "W/\"v\(self.version)\""
        case .date, .none: nil
        }
    }

    struct Answer {
        let head: ResponseHead
        var body: ModelConnection.Body?
    }

    func answer(_ request: RangeRequest, doesRanges: Bool) -> Answer {
        var fields = HTTPFields()
        if let entityTag { fields[.eTag] = entityTag }
        if self.validation == .date { fields[.lastModified] = "Tue, 14 Nov 2023 22:13:2\(self.version % 10) GMT" }
        if let tag = request.ifNoneMatchFieldValue, tag == self.entityTag {
            return Answer(head: ResponseHead(status: 304, fields: fields))
        }
        let condition = request.ifRangeFieldValue
        let isMet = condition == nil || (condition == self.entityTag && !self.dislikesIfRange)
        guard request.isRanged, doesRanges, isMet else {
            if self.tellsLength { fields[.contentLength] = "\(self.length)" }
            return Answer(
                head: ResponseHead(status: 200, fields: fields),
                body: .init(version: self.version, start: 0, end: self.length))
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
            body: .init(version: self.version, start: request.lowerBound, end: end))
    }

    private func end(from lowerBound: Int64) -> Int64 {
        let (end, overflow) = lowerBound.addingReportingOverflow(self.rangeLengthMax)
        return overflow ? .max : end
    }
}
