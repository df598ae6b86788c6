/// What a URL requests of the origin: `/<SIZE>/<anything>?key=value&key=value`.
///
/// The keys combine. `etag-raw`, `modified-raw`, `fail`, `field`, `ranges`, `redirect`, `raw`, `stall-after`,
/// `reset-after` and `close-after` may be given several times. ``Origin`` lists them all. An unknown key or value is an
/// error that names it, so that a misspelling fails the test.
struct Behaviour: Hashable, Sendable {
    // The content.
    var size: Int64
    var seed: UInt64 = 1
    var entityTag: EntityTag = .standard
    var lastModified: LastModified = .standard
    /// The `ETag` lines for the K-th version of the content, byte for byte; the last applies to all later versions.
    var rawEntityTags: [[UInt8]] = []
    /// The same for `Last-Modified`.
    var rawModifications: [[UInt8]] = []
    /// The seeds of the nodes behind this name, which take turns with connections. Each has tags and dates of its own.
    var nodes: [UInt64] = []
    var contentType = "application/octet-stream"
    var contentEncoding: String?
    var disposition: [UInt8]?
    /// The content changes after `requests` requests.
    var changeAfterRequests: Change<Int>?
    /// The content changes after `bytes` bytes of body.
    var changeAfterBytes: Change<Int64>?
    /// Whether that change overwrites the file in place: the rest of an answer that is being sent has the new content.
    var isOverwritten = false
    /// Answers 200 with an empty representation to any range.
    var isEmptyAnswered = false

    // The pace.
    var rate: Int64?
    var totalRate: Int64?
    var slow: Slow?
    var latency: Duration = .zero
    var headByteInterval: Duration?
    var cuts: [Cut] = []
    /// No byte of the content from this offset on is sent.
    var stallsAt: Int64?
    var hasCloseNotify = true

    // Refusals.
    var drop: Count = .none
    var noAnswer: Count = .none
    var limit: Int?
    /// Absent for a reset.
    var limitStatus: Int? = 429
    var failures: [Failure] = []
    var failRange: FailRange?
    var retryAfter: [UInt8]?
    var credentials: [UInt8]?
    var tokenLifetime: Duration?
    /// When the token was issued, since the origin's start.
    var token: Duration?
    /// The K-th redirect answers the K-th request; the last applies to all later ones.
    var redirects: [Redirect] = []
    /// Complete answers, counted in the same way.
    var rawAnswers: [[UInt8]] = []

    // Ranges and lengths.
    var rangeFaults: [RangeFault] = []
    var ifRange: IfRange = .correct
    var framing: Framing = .contentLength

    // Other faults of the head.
    var isGarbage = false
    var isHTTP09 = false
    var statusLine: [UInt8]?
    /// Fields appended unchanged.
    var fields: [AnswerHead.Field] = []
    var headSizeMin = 0
    var headFieldCount = 0
    var interimCount = 0
}

extension Behaviour {
    enum EntityTag: Hashable, Sendable {
        /// `"<size>-<seed>"`.
        case standard
        case weak
        /// A new tag in every answer.
        case random
        case none
        case fixed(String)

        init(_ text: String) {
            switch text {
            case "none": self = .none
            case "weak": self = .weak
            case "random": self = .random
            default: self = .fixed(text.contains("\"") ? text : "\"\(text)\"")
            }
        }
    }

    enum LastModified: Hashable, Sendable {
        /// 14 November 2023, and an hour later for every change of the content.
        case standard
        case none
        case at(unixSeconds: Int64)
    }

    /// The first events of a kind, or all of them.
    enum Count: Hashable, Sendable {
        case first(Int)
        case all

        static let none = Count.first(0)

        /// Whether the one-based `ordinal` is included.
        func includes(_ ordinal: Int) -> Bool {
            switch self {
            case .first(let count): ordinal <= count
            case .all: true
            }
        }
    }

    struct Change<Trigger: Hashable & Sendable>: Hashable, Sendable {
        var trigger: Trigger
        var seed: UInt64
    }

    /// A rate limit for the request of this path with a one-based ordinal.
    struct Slow: Hashable, Sendable {
        var ordinal: Int
        var rate: Int64
    }

    /// Ends the first `count` bodies after `length` bytes.
    struct Cut: Hashable, Sendable {
        var length: Int64
        var count: Count
        var ending: Answer.Ending
    }

    struct Failure: Hashable, Sendable {
        var status: Int
        var count: Count
        var skip: Int
    }

    struct FailRange: Hashable, Sendable {
        var offset: Int64
        var status: Int
    }

    struct Redirect: Hashable, Sendable {
        enum Target: Hashable, Sendable {
            case location([UInt8])
            /// The same URL without the redirecting key, and with a token if tokens expire.
            case plainSelf
            /// The same URL unchanged.
            case loop
            /// The same URL with this number of hops left.
            case hops(Int)
        }

        var status: Int
        var target: Target
    }

    enum IfRange: Hashable, Sendable {
        /// RFC 9110 §13.1.5.
        case correct
        /// Treated as absent.
        case ignored
        /// Never matches.
        case broken
    }

    /// How the message states the end of its body.
    enum Framing: Hashable, Sendable {
        case contentLength
        case closing
        case chunked
        /// Announces this number of bytes more than it sends.
        case wrong(excess: UInt64)
        case two
        case negative
        /// 2^64 + 100.
        case huge
        /// Chunked, with a `Content-Length` as well.
        case both
        /// Neither length nor end.
        case endless
    }
}
