extension Answer {
    /// The answer to a request: a pure function of the URL, the request and the history.
    init(to request: OriginRequest, at moment: Moment) {
        do {
            let behaviour = try Behaviour(request)
            self = Self.refusal(of: request, behaviour, at: moment) ?? Self.content(for: request, behaviour, at: moment)
            self.apply(behaviour)
        } catch {
            self.init(status: 400, text: "\(error)")
        }
        self.head?.append("Date", HTTPDate(unixSeconds: moment.unixSeconds).description)
        self.head?.append("Server", "segdl-origin")
        if request.method == "HEAD" {
            self.body = []
            self.isChunked = false
            self.isContent = false
            if self.head != nil, self.ending != .stall { self.ending = .keepAlive }
        }
        if !request.isKeepAlive, self.ending == .keepAlive { self.ending = .close }
        if self.ending == .close, self.isComplete { self.head?.append("Connection", "close") }
    }

    /// Applies the parts of the behaviour that affect every answer.
    private mutating func apply(_ behaviour: Behaviour) {
        self.head?.statusLine = behaviour.statusLine
        self.head?.fields += behaviour.fields
        self.head?.interimCount = behaviour.interimCount
        self.head?.sizeMin = behaviour.headSizeMin
        self.head?.paddingFieldCount = behaviour.headFieldCount
        if let status = self.head?.status, status >= 400, let retryAfter = behaviour.retryAfter {
            self.head?.append("Retry-After", retryAfter)
        }
        self.latency = behaviour.latency
        self.headByteInterval = behaviour.headByteInterval
        self.hasCloseNotify = behaviour.hasCloseNotify
    }

    /// The answer that precedes any content; `nil` if there is none.
    private static func refusal(of request: OriginRequest, _ behaviour: Behaviour, at moment: Moment) -> Answer? {
        let ordinal = moment.requestOrdinal
        if behaviour.drop.includes(ordinal) { return Answer(head: nil, ending: .close) }
        if let bytes = behaviour.rawAnswers.turn(ordinal) {
            return Answer(head: nil, body: [.bytes(bytes)], ending: .close)
        }
        if behaviour.noAnswer.includes(ordinal) { return Answer(head: nil, ending: .stall) }
        if behaviour.isGarbage {
            return Answer(head: nil, body: [.bytes(Array("this is not http\r\n\r\n".utf8))], ending: .close)
        }
        guard ["GET", "HEAD"].contains(request.method) else {
            var answer = Answer(status: 405, text: "The method \(request.method) is not allowed.")
            answer.head?.append("Allow", "GET, HEAD")
            return answer
        }
        if let limit = behaviour.limit, moment.liveCount >= limit {
            var answer = Answer(head: nil, ending: .reset)
            if let status = behaviour.limitStatus {
                answer = Answer(status: status, text: "\(limit) requests for this path are in progress.")
            }
            answer.isAdmitted = false
            return answer
        }
        if let credentials = behaviour.credentials, request["authorization"] != "Basic \(base64(credentials))" {
            var answer = Answer(status: 401, text: "Authentication is required.")
            answer.head?.append("WWW-Authenticate", "Basic realm=\"origin\"")
            return answer
        }
        if let redirect = behaviour.redirects.turn(ordinal) {
            var answer = Answer(status: redirect.status, text: "The resource is at another URL.")
            answer.head?.append("Location", redirect.location(for: request, behaviour, at: moment))
            return answer
        }
        if let lifetime = behaviour.tokenLifetime {
            guard let token = behaviour.token else { return Answer(status: 403, text: "The URL has no token.") }
            guard moment.elapsed - token <= lifetime else { return Answer(status: 403, text: "The token has expired.") }
        }
        for failure in behaviour.failures where ordinal > failure.skip && failure.count.includes(ordinal - failure.skip)
        {
            return Answer(status: failure.status, text: "Request \(ordinal) fails.")
        }
        if let failRange = behaviour.failRange,
            case .bytes(let bytes) = ByteRangeField(request["range"], size: behaviour.size),
            bytes.lowerBound >= failRange.offset
        {
            return Answer(status: failRange.status, text: "Ranges from offset \(failRange.offset) fail.")
        }
        return nil
    }
}

extension Behaviour.Redirect {
    fileprivate func location(for request: OriginRequest, _ behaviour: Behaviour, at moment: Moment) -> [UInt8] {
        var items = request.queryItems.map(String.init)
        switch self.target {
        case .location(let bytes):
            return bytes
        case .loop:
            return Array(request.target.utf8)
        case .plainSelf:
            items.removeAll { $0.hasPrefix("redirect-to-self=") || $0.hasPrefix("token=") }
            if behaviour.tokenLifetime != nil { items.append("token=\(Int64(moment.elapsed / .milliseconds(1)))") }
        case .hops(let count):
            items = items.map { $0.hasPrefix("redirect-hops=") ? "redirect-hops=\(count - 1)" : $0 }
        }
        let query = items.isEmpty ? "" : "?" + items.joined(separator: "&")
        return Array((request.path + query).utf8)
    }
}

/// RFC 4648 §4.
private func base64(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    var text = ""
    for start in stride(from: 0, to: bytes.count, by: 3) {
        let group = bytes[start..<min(start + 3, bytes.count)]
        let word = (0..<3).reduce(UInt32(0)) { $0 << 8 | UInt32($1 < group.count ? group[start + $1] : 0) }
        for index in 0..<4 {
            text.append(index <= group.count ? alphabet[Int(word >> (18 - 6 * UInt32(index)) & 63)] : "=")
        }
    }
    return text
}
