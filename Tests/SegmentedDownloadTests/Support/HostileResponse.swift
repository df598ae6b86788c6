import SegmentedDownloadCore

/// A response that a correct server would not send, in everything that the code reads of one. The same number is the same
/// response.
struct HostileResponse {
    let answer: RawServer.Answer

    init(number: UInt64) {
        var generator = SplitMix64(seed: number)
        self.answer = Self.answer(using: &generator)
    }

    /// Values by field. Characters up to U+00FF stand for bytes. A `Location` leads to no other machine.
    private static let values: [(name: String, values: [String])] = [
        (
            "Content-Length",
            ["0", "5", "abc", "", "-1", "+5", "5, 5", "5, 6", "0x5", "9223372036854775807", "18446744073709551616"]
        ),
        (
            "Transfer-Encoding",
            ["chunked", "gzip, chunked", "chunked, chunked", "identity", "", "chunked;a=b", "\u{B}chunked"]
        ),
        (
            "Content-Range",
            [
                "bytes 0-0/1", "bytes 0-4/5", "bytes 0-4/*", "bytes */0", "bytes */5", "bytes 5-4/9", "bytes 0-0/0",
                "bytes 0-9223372036854775806/9223372036854775807", "bytes 0-18446744073709551615/*",
                "bytes 9223372036854775807-9223372036854775807/*", "bytes -1-4/5", "lines 0-4/5", "bytes", "",
            ]
        ),
        (
            "Retry-After",
            [
                "0", "-5", "9223372036854775807", "99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT",
                "Sat, 01 Jan 0000 00:00:00 GMT", "soon", "",
            ]
        ),
        (
            "Date",
            ["Thu, 01 Jan 0000 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:60 GMT", "Sun Nov  6 08:49:37 1994", "", "now"]
        ),
        ("ETag", ["\"x\"", "W/\"x\"", "x", "", "\"", "\"\u{E9}\u{FF}\"", "W/", "\"\u{0}\"", "\"\(Self.long)\""]),
        (
            "Last-Modified",
            [
                "Sun, 06 Nov 1994 08:49:37 GMT", "Thu, 01 Jan 0000 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:60 GMT",
                "Sun Nov  6 08:49:37 1994", "x", "", "Sunday, 06-Nov-94 08:49:37 GMT",
            ]
        ),
        (
            "Location",
            [
                "/x", "", "//", "http://", "http:", "#", "?", "http://127.0.0.1:0/", "http://127.0.0.1:1/",
                "http://[::1]:1/", "http://[::1", "http://127.0.0.1:99999/", "file:///etc/passwd", "/\u{FF}",
                "http://a:b@127.0.0.1:1/", "?\(Self.long)",
            ]
        ),
        (
            "Link",
            [
                "<", "<>", "<m>; rel=duplicate; pri=99999999999999999999", "<m>; rel=duplicate; geo=xx, <n>; rel=next",
                "<>;;;=", "<a>; rel=\"next", "<\u{FF}>; rel=describedby; type=\"application/metalink4+xml\"",
                Self.links,
            ]
        ),
        ("Repr-Digest", Self.digests), ("Content-Digest", Self.digests),
        ("Digest", ["SHA-256=", ",,,=,", "sha-256=AAAA", "md5=\(Self.zeros(16)), sha=\(Self.zeros(20))", "=", ""]),
        ("Content-MD5", [Self.zeros(16), "AAAA", "", "="]),
        ("x-goog-hash", ["crc32c=AAAAAA==,md5=", "md5=\(Self.zeros(16))", ","]),
        ("x-amz-checksum-sha256", [Self.zeros(32), "AAAA-2", ""]),
        ("X-Linked-Etag", ["\"\(Self.zeroDigits)\"", "\"x\"", "W/\"\""]),
        ("X-Linked-Size", ["-1", "5", "99999999999999999999"]),
        (
            "Content-Disposition",
            [
                "attachment; filename=", "attachment; filename=\"\(Self.longName)\"",
                "attachment; filename*=UTF-8''%", "attachment; filename*=UTF-8''%00%2e%2e%2f",
                "attachment; filename=\"\u{FF}\u{FE}/..\\\"", "inline; filename=CON", "filename*=''", ";;;=;",
                "attachment; filename*=utf-8''%F0%9F%98%80.segdl-part", "attachment; filename=\"..\"", "",
            ]
        ),
        ("Content-Type", ["multipart/byteranges", "multipart/byteranges; boundary=", "text/html", ";", ""]),
        ("Content-Encoding", ["gzip", ",", "", "identity, br"]),
        (
            "Set-Cookie",
            [
                "", "=", "a=b; Max-Age=99999999999999999999; Expires=x; Domain=.; Path=", "a=b; Domain=127.0.0.1",
                "\u{FF}=\u{FE}",
            ]
        ),
        ("WWW-Authenticate", ["", "Basic realm=\"", "\u{1B}[2J"]),
        ("Trailer", ["Content-Digest", "x", ",", "Repr-Digest, Content-Digest"]),
        ("Connection", ["close", "close, x", "upgrade", "keep-alive", ""]),
        ("Upgrade", ["h2c", ""]),
        ("Age", ["-1", "99999999999999999999"]),
    ]

    private static let long = String(repeating: "a", count: 9000)
    private static let longName = String(repeating: "a", count: 300)
    private static let zeroDigits = String(repeating: "0", count: 64)
    private static let links = String(repeating: "<a>; rel=duplicate, ", count: 400)
    private static let digests = [
        "sha-256=:AAAA:", "sha-256=:\(Self.zeros(32)):", "sha-512=:\(Self.zeros(64)):", "sha-512=:::", "(", "a=(1 2);b",
        "sha-256=\"x\"", "sha-256=:\(Self.zeros(32)):;a=1, sha-256=1", "",
    ]

    /// Zero bytes in base64, so that the digest is of nothing.
    private static func zeros(_ count: Int) -> String {
        let digits = (count * 4 + 2) / 3
        return String(repeating: "A", count: digits) + String(repeating: "=", count: (4 - digits % 4) % 4)
    }

    private static let statuses = [
        200, 200, 200, 200, 206, 206, 206, 302, 301, 304, 416, 401, 407, 503, 429, 204, 205, 300, 101, 100, 103, 99,
    ]

    private static func answer(using generator: inout SplitMix64) -> RawServer.Answer {
        func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }
        let status =
            chance(8)
            ? Int.random(in: 0..<1000, using: &generator) : Self.statuses.randomElement(using: &generator) ?? 200
        var lines: [String] = []
        var isFramed = status >= 200
        for (name, values) in Self.values where chance(6) {
            let isFraming = ["Content-Length", "Transfer-Encoding", "Connection", "Upgrade"].contains(name)
            if isFraming { isFramed = false }
            for _ in 0..<(chance(8) ? 2 : 1) {
                var value = Array(values.randomElement(using: &generator) ?? "")
                // A damaged location might lead to another machine.
                if name != "Location", !value.isEmpty, chance(8) {
                    let place = Int.random(in: 0..<value.count, using: &generator)
                    value[place] = Character(Unicode.Scalar(UInt8.random(in: 0...255, using: &generator)))
                    isFramed = false
                }
                lines.append("\(name): \(String(value))")
            }
        }
        let length = [0, 1, 5, 1000, 70_000].randomElement(using: &generator) ?? 0
        var body = [UInt8](repeating: UInt8(ascii: "b"), count: length)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: isFramed = false
        case 1:
            lines.append("Transfer-Encoding: chunked")
            let digest = Self.digests.randomElement(using: &generator) ?? ""
            let end = ["\r\n", "Content-Digest: \(digest)\r\nRepr-Digest: \(digest)\r\n\r\n", "A\r\n\r\n", ""]
            let rest = end.randomElement(using: &generator) ?? ""
            if rest.hasPrefix("A") || rest.isEmpty { isFramed = false }
            let chunk: [UInt8] =
                length > 0 ? Array("\(String(length, radix: 16))\r\n".utf8) + body + Array("\r\n".utf8) : []
            body = chunk + Array("0\r\n\(rest)".utf8)
        default: lines.append("Content-Length: \(length)")
        }
        lines.shuffle(using: &generator)
        let reason = ["OK", "", "\u{FF}"].randomElement(using: &generator) ?? ""
        let digits = "\(status / 100)\(status / 10 % 10)\(status % 10)"
        let version = chance(16) ? ["1.0", "2.0", "0.9", "1.2"].randomElement(using: &generator) ?? "" : "1.1"
        if version != "1.1" { isFramed = false }
        let head = ["HTTP/\(version) \(digits) \(reason)"] + lines
        var bytes = Self.bytes(head.joined(separator: "\r\n") + "\r\n\r\n") + body
        if chance(10) {
            bytes.removeLast(Int.random(in: 0..<bytes.count, using: &generator))
            isFramed = false
        }
        if chance(8) {
            let count = [1, 2, 32, 33].randomElement(using: &generator) ?? 1
            let interim = "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"
            bytes = Self.bytes(String(repeating: interim, count: count)) + bytes
        }
        // A second response, to which there is no request.
        if chance(16) { bytes += bytes }
        return RawServer.Answer(bytes: bytes, keepsOpen: isFramed && chance(2))
    }

    private static func bytes(_ text: String) -> [UInt8] {
        text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    }
}
