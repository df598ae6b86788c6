extension Answer {
    /// The answer with the representation, or with the requested part of it.
    static func content(for request: OriginRequest, _ behaviour: Behaviour, at moment: Moment) -> Answer {
        let representation = Representation(behaviour, at: moment)
        if let known = request["if-none-match"], representation.matches(tag: known) {
            var answer = Answer(head: AnswerHead(status: 304), body: [], ending: .keepAlive)
            answer.describe(representation, behaviour)
            return answer
        }
        let range = self.range(for: request, behaviour, representation, at: moment)
        if range.kind == .unsatisfiable {
            var answer = Answer(status: 416, text: "No byte of \(representation.size) is in the range.")
            range.contentRange.map { answer.head?.append("Content-Range", $0) }
            answer.describe(representation, behaviour)
            return answer
        }

        var head = AnswerHead(status: range.kind == .partial ? 206 : 200)
        var content = Part.content(
            seed: representation.seed, offset: range.body.lowerBound, length: Int64(range.body.count))
        if behaviour.framing == .endless { content = .content(seed: representation.seed, offset: 0, length: .max) }
        var body = [content]
        if behaviour.isOverwritten, let change = behaviour.changeAfterBytes {
            body = Self.overwritten(content, by: change.seed, after: change.trigger - moment.bytesSent)
        }
        if range.isMultipart {
            head.append("Content-Type", "multipart/byteranges; boundary=SEGDL")
            let part =
                "--SEGDL\r\nContent-Type: \(behaviour.contentType)\r\nContent-Range: \(range.contentRange ?? "")\r\n\r\n"
            body = [.bytes(Array(part.utf8)), content, .bytes(Array("\r\n--SEGDL--\r\n".utf8))]
        } else {
            head.append("Content-Type", behaviour.contentType)
            range.contentRange.map { head.append("Content-Range", $0) }
        }

        var answer = Answer(head: head, body: body, ending: .keepAlive)
        if range.isAdvertised { answer.head?.append("Accept-Ranges", "bytes") }
        answer.describe(representation, behaviour)
        answer.frame(behaviour.framing, length: answer.length)
        answer.isContent = true
        answer.rate = behaviour.rate
        if let slow = behaviour.slow, slow.ordinal == moment.requestOrdinal {
            answer.rate = min(slow.rate, behaviour.rate ?? slow.rate)
        }
        answer.totalRate = behaviour.totalRate
        if behaviour.isHTTP09 {
            answer.head = nil
            answer.ending = .close
        }
        answer.cut(behaviour.cuts, bodyOrdinal: moment.bodyOrdinal)
        if let offset = behaviour.stallsAt, UInt64(max(offset - range.body.lowerBound, 0)) < answer.length {
            answer.cut(at: max(offset - range.body.lowerBound, 0), ending: .stall)
        }
        return answer
    }

    /// Content of which only the first bytes were read before the file was overwritten.
    private static func overwritten(_ content: Part, by new: UInt64, after count: Int64) -> [Part] {
        guard case .content(let seed, let offset, let length) = content, 0..<length ~= count else { return [content] }
        return [
            .content(seed: seed, offset: offset, length: count),
            .content(seed: new, offset: offset + count, length: length - count),
        ]
    }

    private static func range(
        for request: OriginRequest,
        _ behaviour: Behaviour,
        _ representation: Representation,
        at moment: Moment
    ) -> RangeAnswer {
        let size = representation.size
        // Range is defined for GET only (RFC 9110 §14.2).
        var field = ByteRangeField(request.method == "GET" ? request["range"] : nil, size: size)
        if let condition = request["if-range"] {
            switch behaviour.ifRange {
            case .correct where representation.matches(ifRange: condition, unixSeconds: moment.unixSeconds): break
            case .correct, .broken: field = .ignored
            case .ignored: break
            }
        }
        if behaviour.framing == .endless || size == 0 && behaviour.isEmptyAnswered { field = .ignored }
        return RangeAnswer(to: field, size: size, faults: behaviour.rangeFaults)
    }

    private mutating func describe(_ representation: Representation, _ behaviour: Behaviour) {
        representation.entityTag.map { self.head?.append("ETag", $0) }
        representation.lastModified.map { self.head?.append("Last-Modified", $0) }
        behaviour.contentEncoding.map { self.head?.append("Content-Encoding", $0) }
        behaviour.disposition.map { self.head?.append("Content-Disposition", $0) }
    }

    private mutating func frame(_ framing: Behaviour.Framing, length: UInt64) {
        switch framing {
        case .contentLength:
            self.head?.append("Content-Length", "\(length)")
            return
        case .chunked, .both:
            if framing == .both { self.head?.append("Content-Length", "\(length)") }
            self.head?.append("Transfer-Encoding", "chunked")
            self.isChunked = true
            return
        case .closing, .endless:
            break
        case .wrong(let excess):
            self.head?.append("Content-Length", "\(length + excess)")
            self.isComplete = false
        case .two:
            self.head?.append("Content-Length", "\(length)")
            self.head?.append("Content-Length", "\(length + 1)")
        case .negative:
            self.head?.append("Content-Length", "-1")
        case .huge:
            self.head?.append("Content-Length", "18446744073709551716")
        }
        self.ending = .close
    }

    /// Applies the earliest of the cuts that apply to this body.
    private mutating func cut(_ cuts: [Behaviour.Cut], bodyOrdinal: Int) {
        let due = cuts.filter { $0.count.includes(bodyOrdinal) && UInt64($0.length) < self.length }
        guard let first = due.min(by: { $0.length < $1.length }) else { return }
        self.cut(at: first.length, ending: first.ending)
    }
}
