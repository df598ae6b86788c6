/// What the origin does about one request: what it sends, how fast, and how it ends the response.
struct Answer: Hashable, Sendable {
    enum Part: Hashable, Sendable {
        case bytes([UInt8])
        case content(seed: UInt64, offset: Int64, length: Int64)

        var length: Int64 {
            switch self {
            case .bytes(let bytes): Int64(bytes.count)
            case .content(_, _, let length): length
            }
        }

        func prefix(_ length: Int64) -> Part {
            switch self {
            case .bytes(let bytes): .bytes(Array(bytes.prefix(Int(clamping: length))))
            case .content(let seed, let offset, let whole):
                .content(seed: seed, offset: offset, length: min(whole, length))
            }
        }
    }

    enum Ending: Hashable, Sendable {
        /// The connection waits for the next request.
        case keepAlive
        /// FIN.
        case close
        /// RST.
        case reset
        /// The connection stays open and sends nothing more.
        case stall
    }

    /// `nil` if nothing that resembles a response is sent.
    var head: AnswerHead?
    var body: [Part] = []
    var isChunked = false
    var ending: Ending

    var latency: Duration = .zero
    var headByteInterval: Duration?
    var rate: Int64?
    /// A rate that all answers of the path share.
    var totalRate: Int64?
    /// Whether TLS closes with a `close_notify`.
    var hasCloseNotify = true

    /// Whether the request counts toward the path's limit.
    var isAdmitted = true
    /// Whether the body is content, and counts as one of the path's bodies.
    var isContent = false
    /// Whether the last chunk of a chunked body is sent.
    var isComplete = true

    init(head: AnswerHead?, body: [Part] = [], ending: Ending) {
        self.head = head
        self.body = body
        self.ending = ending
    }

    /// A short text; the caller appends further fields.
    init(status: Int, text: String) {
        var head = AnswerHead(status: status)
        let text = text + "\n"
        head.append("Content-Type", "text/plain; charset=utf-8")
        head.append("Content-Length", "\(text.utf8.count)")
        self.init(head: head, body: [.bytes(Array(text.utf8))], ending: .keepAlive)
    }

    /// Bytes of body to send.
    var length: UInt64 {
        self.body.reduce(0) { $0 + UInt64($1.length) }
    }

    /// Ends the body early.
    mutating func cut(at length: Int64, ending: Ending) {
        var rest = length
        self.body = self.body.map { part in
            let kept = part.prefix(rest)
            rest -= kept.length
            return kept
        }
        self.isComplete = false
        self.ending = ending
    }
}
