/// A response head, every byte of which can be wrong.
struct AnswerHead: Hashable, Sendable {
    struct Field: Hashable, Sendable {
        var name: String
        var value: [UInt8]
    }

    var status: Int
    var fields: [Field] = []
    /// A line to send instead of the right one.
    var statusLine: [UInt8]?
    var interimCount = 0
    /// The head is padded to about this number of bytes.
    var sizeMin = 0
    var paddingFieldCount = 0

    init(status: Int) {
        self.status = status
    }

    mutating func append(_ name: String, _ value: String) {
        self.append(name, Array(value.utf8))
    }

    mutating func append(_ name: String, _ value: [UInt8]) {
        self.fields.append(Field(name: name, value: value))
    }

    /// The head on the wire, interim responses first.
    var bytes: [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<self.interimCount {
            bytes += "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n".utf8
        }
        bytes += self.statusLine ?? Array("HTTP/1.1 \(self.status) \(Self.reason(self.status))".utf8)
        bytes += "\r\n".utf8
        for field in self.fields {
            bytes += field.name.utf8
            bytes += ": ".utf8
            bytes += field.value
            bytes += "\r\n".utf8
        }
        for index in 0..<self.paddingFieldCount {
            bytes += "X-Field-\(index): \(index)\r\n".utf8
        }
        while bytes.count < self.sizeMin {
            // 1 KiB per field, so that a large head does not also have an overlong field.
            bytes += "X-Pad: ".utf8
            bytes += repeatElement(UInt8(ascii: "x"), count: min(1024, self.sizeMin - bytes.count))
            bytes += "\r\n".utf8
        }
        bytes += "\r\n".utf8
        return bytes
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 206: "Partial Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 303: "See Other"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 410: "Gone"
        case 416: "Range Not Satisfiable"
        case 429: "Too Many Requests"
        case 500: "Internal Server Error"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 504: "Gateway Timeout"
        default: "Status"
        }
    }
}
