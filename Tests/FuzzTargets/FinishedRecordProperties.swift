import HTTPTypes
import SegmentedDownloadCore

/// A record read from an attribute prints back to itself, and the values of any response survive being stored in one.
enum FinishedRecordProperties {
    static func check(_ bytes: [UInt8]) throws(Violation) {
        if let record = FinishedRecord(decoding: bytes) {
            try require(record.length >= 0, "a file of \(record.length) bytes")
            try require(record.resource.completeLength == record.length, "two lengths in one record")
            try Self.checkPrinting(record)
        }
        // Three lines of a response, and the resulting file.
        let lines = Reference.split(bytes, at: "\n").map { String(decoding: $0, as: UTF8.self) }
        guard lines.count >= 3 else { return }
        var fields: HTTPFields = [.contentLength: "1"]
        fields.append(HTTPField(name: .eTag, value: lines[0]))
        fields.append(HTTPField(name: .lastModified, value: lines[1]))
        fields.append(HTTPField(name: .contentEncoding, value: lines[2]))
        let head = ResponseHead(status: 200, fields: fields)
        guard case .whole(let resource) = RangeResponse(request: RangeRequest(), head: head) else {
            throw Violation(description: "\(lines) is not a complete file")
        }
        var record = FinishedRecord(resource: resource, length: 1, crc: CRC32(value: .max), modified: .min)
        try Self.checkPrinting(record)
        record.crc = CRC32(value: 0)
        record.modified = .max
        record.changed = .min
        record.isSynced = false
        try Self.checkPrinting(record)
    }

    private static func checkPrinting(_ record: FinishedRecord) throws(Violation) {
        let bytes = record.encoded
        guard let again = FinishedRecord(decoding: bytes) else {
            throw Violation(description: "\(String(decoding: bytes, as: UTF8.self).debugDescription) is not read again")
        }
        try require(
            again == record && again.encoded == bytes,
            "\(String(decoding: bytes, as: UTF8.self).debugDescription) is read as something else")
    }
}
