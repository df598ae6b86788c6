import NIOCore

/// Plays an answer as a sequence of steps: wait, write, end. It does no I/O and reads no clock.
struct AnswerPlayer {
    enum Step {
        case wait(until: NIODeadline)
        case write(ByteBuffer, bodyCount: Int)
        case finish(Answer.Ending)
    }

    private let ending: Answer.Ending
    private let headByteInterval: TimeAmount?
    private let pacers: [Pacer]
    private let isChunked: Bool
    private var head: ByteBuffer
    private var parts: ArraySlice<Answer.Part>
    /// The content of the first part.
    private var content: OriginContent?
    private var isTerminatorDue: Bool

    private var due: NIODeadline
    /// The length of the chunk that the pacers have reserved.
    private var reserved: Int?

    init(_ answer: Answer, pacers: [Pacer], at now: NIODeadline) {
        self.ending = answer.ending
        self.headByteInterval = answer.headByteInterval.map(TimeAmount.init)
        self.pacers = pacers
        self.isChunked = answer.isChunked
        self.head = ByteBuffer(bytes: answer.head?.bytes ?? [])
        self.parts = answer.body.filter { $0.length > 0 }[...]
        self.isTerminatorDue = answer.isChunked && answer.isComplete
        self.due = now + TimeAmount(answer.latency)
    }

    mutating func next(at now: NIODeadline) -> Step {
        guard self.due <= now else { return .wait(until: self.due) }
        if self.head.readableBytes > 0 { return self.writeHead(at: now) }
        guard let part = self.parts.first else {
            guard self.isTerminatorDue else { return .finish(self.ending) }
            self.isTerminatorDue = false
            return .write(ByteBuffer(string: "0\r\n\r\n"), bodyCount: 0)
        }

        let count = self.reserved ?? self.chunkLength(of: part)
        if self.reserved == nil {
            self.reserved = count
            self.due = self.pacers.reduce(now) { max($0, $1.reserve(count, at: now)) }
            guard self.due <= now else { return .wait(until: self.due) }
        }
        self.reserved = nil
        let data = self.take(count, of: part)
        return .write(self.isChunked ? Self.chunk(data) : data, bodyCount: count)
    }

    private func chunkLength(of part: Answer.Part) -> Int {
        let length = Int(min(part.length, Int64(OriginContent.sliceMax)))
        return self.pacers.reduce(length) { min($0, $1.chunkMax) }
    }

    private mutating func writeHead(at now: NIODeadline) -> Step {
        var piece = self.head
        if let interval = self.headByteInterval {
            piece = self.head.readSlice(length: 1) ?? piece
            self.due = now + interval
        } else {
            self.head.clear()
        }
        return .write(piece, bodyCount: 0)
    }

    /// The first bytes of the first part; the rest of the part stays.
    private mutating func take(_ count: Int, of part: Answer.Part) -> ByteBuffer {
        let data: ByteBuffer
        let rest: Answer.Part
        switch part {
        case .bytes(let bytes):
            data = ByteBuffer(bytes: bytes.prefix(count))
            rest = .bytes(Array(bytes.dropFirst(count)))
        case .content(let seed, let offset, let length):
            let content = self.content ?? OriginContent(seed: seed)
            self.content = content
            data = content.slice(at: offset, lengthMax: Int64(count))
            rest = .content(seed: seed, offset: offset + Int64(count), length: length - Int64(count))
        }
        if rest.length > 0 {
            self.parts[self.parts.startIndex] = rest
        } else {
            self.parts.removeFirst()
            self.content = nil
        }
        return data
    }

    private static func chunk(_ data: ByteBuffer) -> ByteBuffer {
        var chunk = ByteBuffer(string: String(data.readableBytes, radix: 16) + "\r\n")
        chunk.writeImmutableBuffer(data)
        chunk.writeString("\r\n")
        return chunk
    }
}
