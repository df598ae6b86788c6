/// What a URL asks the origin to do: `/<SIZE>/<anything>?key=value&key=value`.
///
/// The keys combine. `etag-raw`, `modified-raw`, `fail`, `field`, `ranges`, `redirect`, `raw`, `stall-after`, `reset-after` and `close-after` may be given
/// several times. ``Origin`` lists them all. A key or value it does not know is an error that names it, so that no test
/// misspells in silence.
struct Behaviour: Hashable, Sendable {
    // What is served.
    var size: Int64
    var seed: UInt64 = 1
    var entityTag: EntityTag = .standard
    var lastModified: LastModified = .standard
    /// What the `ETag` lines of the K-th version of the content say, byte for byte, the last for all that follow.
    var rawEntityTags: [[UInt8]] = []
    /// Likewise for `Last-Modified`.
    var rawModifications: [[UInt8]] = []
    /// The seeds of the nodes behind this name, which take turns with connections. Each has tags and dates of its own.
    var nodes: [UInt64] = []
    var contentType = "application/octet-stream"
    var contentEncoding: String?
    var disposition: [UInt8]?
    /// Other content once `requests` requests were seen.
    var changeAfterRequests: Change<Int>?
    /// Other content once `bytes` bytes of body were sent.
    var changeAfterBytes: Change<Int64>?
    /// Answers 200 for an empty representation whatever range is asked.
    var isEmptyAnswered = false

    // How fast.
    var rate: Int64?
    var totalRate: Int64?
    var slow: Slow?
    var latency: Duration = .zero
    var headByteInterval: Duration?
    var cuts: [Cut] = []
    var hasCloseNotify = true

    // What is refused.
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
    /// When the token was given out, since the origin's start.
    var token: Duration?
    /// The K-th for the K-th request, the last for all that follow.
    var redirects: [Redirect] = []
    /// Answers in full, counted likewise.
    var rawAnswers: [[UInt8]] = []

    // How ranges and lengths are told.
    var rangeFaults: [RangeFault] = []
    var ifRange: IfRange = .correct
    var framing: Framing = .contentLength

    // What else is wrong with the head.
    var isGarbage = false
    var isHTTP09 = false
    var statusLine: [UInt8]?
    /// Fields appended as they are.
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
        /// A new one in every answer.
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

    /// The first so many of something.
    enum Count: Hashable, Sendable {
        case first(Int)
        case all

        static let none = Count.first(0)

        /// Whether the one-based `ordinal` is among them.
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

    /// A limit for the request of this path with a one-based ordinal.
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
            /// The very same URL.
            case loop
            /// The same URL with so many hops to go.
            case hops(Int)
        }

        var status: Int
        var target: Target
    }

    enum IfRange: Hashable, Sendable {
        /// RFC 9110 §13.1.5.
        case correct
        /// Taken as absent.
        case ignored
        /// Never true.
        case broken
    }

    /// How the end of the body is told.
    enum Framing: Hashable, Sendable {
        case contentLength
        case closing
        case chunked
        /// Announces so many bytes more than follow.
        case wrong(excess: UInt64)
        case two
        case negative
        /// 2^64 + 100.
        case huge
        /// Chunked, with a `Content-Length` beside it.
        case both
        /// Neither length nor end.
        case endless
    }
}
