import SegmentedDownload
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// One event as a flat JSON object. Unknown values are absent.
struct EventRecord: Codable {
    var v = 1
    var event: String
    var id: String?
    var time: Double
    var userInfo: [String: String]?

    var url: String?
    var path: String?
    var bytesTotal: Int64?
    var resumedFrom: Int64?
    var segmented: Bool?
    var validator: String?

    var bytesDone: Int64?
    var bytesDurable: Int64?
    var rate: Int64?
    var eta: Double?
    var connections: Int?

    var segment: Int?
    var start: Int64?
    var end: Int64?
    var state: String?
    var source: String?

    var reason: String?
    var attempt: Int?
    var delay: Double?

    var bytes: Int64?
    var bytesFetched: Int64?
    var requests: Int?
    var connectionsPeak: Int?
    var seconds: Double?
    var crc32: String?
    var digests: [String]?
    var verifiedBy: String?
    var alreadyComplete: Bool?

    var code: String?
    var exit: Int32?
    var message: String?
    var status: Int?
    var errno: Int32?
    var resumable: Bool?
    var hint: String?

    var completed: Int?
    var failed: Int?
    var paused: Int?

    init(_ event: String, id: Download.ID? = nil, time: Duration) {
        self.event = event
        self.id = id?.rawValue
        self.time = Seconds(time).rounded
    }
}

extension Encodable {
    /// The value as one line of JSON with sorted keys and escaped control characters.
    var jsonLine: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.keyEncodingStrategy = .convertToSnakeCase
        guard let data = try? encoder.encode(self) else { return "{}" }
        // Outside of strings JSON is ASCII, so each of these characters is in a string and can be escaped.
        var line = ""
        for scalar in String(decoding: data, as: UTF8.self).unicodeScalars {
            if scalar.isPrintable {
                line.unicodeScalars.append(scalar)
            } else {
                let digits = String(scalar.value, radix: 16)
                line += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return line
    }
}
