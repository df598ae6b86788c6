import HTTPTypes
import SegmentedDownloadCore

/// The connections: they answer, deliver bytes and fail.
extension MachineWorld {
    private mutating func end(_ index: Int, _ end: LeaseEnd) {
        guard self.connections[index].phase != .over else { return }
        self.connections[index].phase = .over
        let connection = self.connections[index]
        self.inbox.append(.download(connection.download, .ended(connection.order.lease, end)))
    }

    mutating func answer(_ decision: LeaseDecision, _ index: Int) {
        guard self.connections[index].phase == .waiting else { return }
        switch decision {
        case .stop:
            self.connections[index].isDismissed = true
            self.end(index, .finished)
        case .proceed(let limit, let from):
            self.connections[index].position = max(self.connections[index].position, from ?? 0)
            let connection = self.connections[index]
            if self.connections[index].isRevoked {
                self.end(index, .finished)
                return
            }
            if limit <= connection.position, !connection.order.isSample {
                self.violate("\(connection.order.lease) may proceed by nothing")
            }
            if let end = connection.responseEnd, limit > end { self.violate("\(limit) is past the response's end") }
            self.connections[index].limit = max(connection.limit, limit)
            self.connections[index].phase = .receiving
        }
    }

    mutating func narrow(to limit: Int64, _ index: Int) -> Int64 {
        let connection = self.connections[index]
        self.connections[index].limit = min(connection.limit, max(limit, connection.position))
        return self.connections[index].limit
    }

    /// One move of one connection: a head arrives, some bytes arrive, or a fault strikes.
    mutating func move(_ index: Int) {
        let connection = self.connections[index]
        if connection.isRevoked, connection.phase != .over, Bool.random(using: &self.generator) {
            // The last write when a connection ends may fail too.
            let fails = connection.phase == .receiving && self.chance(self.faultiness / 10)
            self.end(index, fails ? .storageFailed(DownloadError(.file, "input/output error")) : .revoked)
            return
        }
        switch connection.phase {
        case .asking:
            if self.chance(self.faultiness / 2) {
                self.end(index, .failed(DownloadError(.network, "connection refused", isTransient: true)))
            } else if let headAt = connection.headAt, headAt <= self.now {
                self.answerRequest(index)
            }
        case .receiving where !connection.isStalled: self.receive(index)
        case .waiting, .receiving, .over: break
        }
    }

    private mutating func answerRequest(_ index: Int) {
        let connection = self.connections[index]
        let request = connection.order.request
        var origin = self.downloads[connection.download.rawValue].origin
        if self.chance(self.faultiness / 8), origin.tellsVersions, origin.lengths.count < 4 {
            origin.lengths.append(max(origin.length + Int64.random(in: -3...3, using: &self.generator), 0))
            self.downloads[connection.download.rawValue].origin = origin
        }
        let locator = self.lead(&origin, connection)
        let doesRanges =
            origin.ranges == .always || (origin.ranges == .sometimes && Bool.random(using: &self.generator))
        var answer = origin.answer(request, doesRanges: doesRanges)
        let busy = self.connections.count { $0.body != nil && $0.phase != .over }
        if busy >= self.served {
            answer = .init(head: ResponseHead(status: 429, fields: self.retryAfter()))
        } else if self.chance(self.faultiness) {
            answer = self.badAnswer(answer, total: origin.length)
        }
        self.noteAnswer(answer, of: origin, connection)
        let response = RangeResponse(request: request, head: answer.head, locator: locator)
        self.connections[index].body = answer.body
        self.connections[index].responseEnd = response.bodyEnd
        self.connections[index].bodyStart = response.bodyStart
        self.connections[index].offset = response.bodyStart
        self.connections[index].phase = .waiting
        self.inbox.append(
            .download(connection.download, .responded(connection.order.lease, response, suggestedName: nil)))
    }

    private mutating func retryAfter() -> HTTPFields {
        switch Int.random(in: 0..<4, using: &self.generator) {
        case 0: [.retryAfter: "\(Int.random(in: 0...20, using: &self.generator))"]
        default: [:]
        }
    }

    private mutating func badAnswer(_ good: ModelOrigin.Answer, total: Int64) -> ModelOrigin.Answer {
        var fields = good.head.fields
        switch Int.random(in: 0..<10, using: &self.generator) {
        case 9:
            // A shorter part than requested, of a range or of the whole.
            guard let body = good.body, body.end > body.start else { return good }
            let end = Int64.random(in: (body.start + 1)...body.end, using: &self.generator)
            fields[.contentRange] = "bytes \(body.start)-\(end - 1)/\(total)"
            fields[.contentLength] = nil
            return .init(
                head: ResponseHead(status: 206, fields: fields),
                body: .init(content: body.content, start: body.start, end: end))
        case 0: return .init(head: ResponseHead(status: 503, fields: self.retryAfter()))
        case 1: return .init(head: ResponseHead(status: 500))
        case 2: return .init(head: ResponseHead(status: 502, fields: self.retryAfter()))
        case 3: fields[.contentRange] = nil
        case 4: fields[.contentLength] = "1x"
        case 5: fields[.contentType] = "multipart/byteranges; boundary=x"
        // Where versions are drawn often, two answers without tags would hide a change.
        case 6: fields[.eTag] = self.hasIdentity ? fields[.eTag] : nil
        case 7: return .init(head: ResponseHead(status: 416))
        default: return .init(head: ResponseHead(status: 429, fields: self.retryAfter()))
        }
        return .init(head: ResponseHead(status: good.head.status, fields: fields), body: good.body)
    }

    private mutating func receive(_ index: Int) {
        let connection = self.connections[index]
        guard let body = connection.body else { return }
        if self.chance(self.faultiness / 2) {
            self.end(index, .failed(DownloadError(.network, "connection reset", isTransient: true)))
            return
        }
        if self.chance(self.faultiness / 5) {
            self.connections[index].isStalled = true
            return
        }
        if self.chance(self.faultiness / 10) {
            self.end(index, .storageFailed(DownloadError(.file, "input/output error")))
            return
        }
        // The offset of the body's next byte in the origin's file.
        let source = body.start + (connection.offset - connection.bodyStart)
        let left = body.end - source
        guard left > 0 else {
            self.end(index, .finished)
            return
        }
        let download = self.downloads[connection.download.rawValue]
        let chunk = min(left, Int64.random(in: 1...max(download.origin.length / 12, 2), using: &self.generator))
        self.connections[index].bytesReceived += chunk
        self.take(index, chunk, body, source: source)
    }

    /// What the fetcher does with a chunk: compare, write up to the limit, ask for more.
    private mutating func take(_ index: Int, _ chunk: Int64, _ body: ModelConnection.Body, source: Int64) {
        var connection = self.connections[index]
        let id = connection.download.rawValue
        let end = connection.offset + chunk
        var offset = connection.offset
        let compared = min(end, connection.position)
        if offset < compared {
            // Two contents differ in every byte, and so does a byte from another offset.
            if self.downloads[id].disk.content(at: offset) != body.content || source != offset {
                self.end(index, .differs(at: offset, byte: UInt8(truncatingIfNeeded: body.content.file)))
                return
            }
            offset = compared
        }
        let granted = max(min(end, connection.limit) - offset, 0)
        if granted > 0 {
            let range = offset..<(offset + granted)
            let shift = source - connection.offset
            if !self.downloads[id].disk.write(range, body.content, shift: shift, mark: connection.order.mark) {
                self.violate("\(connection.order.lease) writes \(range), which is partly written already")
            }
            self.checkMeeting(of: body.content, id)
            connection.position = range.upperBound
            offset = range.upperBound
        }
        connection.offset = offset
        let isAtLimit = connection.position >= connection.limit
        // While bytes are only compared, the connection does not ask for a higher limit.
        let mayAsk = isAtLimit && offset >= connection.position && offset < connection.responseEnd ?? offset
        if offset < end || mayAsk {
            connection.phase = .waiting
            self.inbox.append(.download(connection.download, .limitReached(connection.order.lease)))
        }
        self.connections[index] = connection
    }
}
