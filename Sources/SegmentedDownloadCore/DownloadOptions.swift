/// How one file is fetched: everything about it that can be chosen, except where it comes from, where it goes, and secrets.
///
/// A request, a manifest and a ``DownloadSettings`` hold this value as it is. A new option is declared here, once, with its
/// default; it needs a line in ``init(from:)`` besides.
public struct DownloadOptions: Hashable, Sendable {
    /// How many connections fetch the file.
    public enum Segments: Hashable, Sendable {
        /// segdl chooses the number.
        case automatic
        /// Exactly this number, at least 1, while that much work is left.
        case exactly(Int)

        /// With at least one connection.
        package var clamped: Segments {
            switch self {
            case .automatic: .automatic
            case .exactly(let count): .exactly(max(count, 1))
            }
        }
    }

    /// What to do with a partial download that an earlier run left.
    public enum Continuation: String, Codable, Hashable, Sendable, CaseIterable {
        /// Resume it if that is possible, else start over.
        case auto
        /// Resume it or fail.
        case must
        /// Start over.
        case no
    }

    /// What to do if the remote file is not the one that the partial download was begun with.
    public enum ChangePolicy: String, Codable, Hashable, Sendable, CaseIterable {
        /// Fail, and keep the partial download.
        case fail
        /// Start over. The old part is kept until the new one has begun.
        case restart
    }

    /// What to do if the destination exists.
    ///
    /// A file that another download of the group has put there is never replaced or kept in place of the requested one
    /// unless a digest or the library's record proves that it is the same file: the download fails with code `exists`.
    /// For ``overwrite`` and for files that are kept without a proof, this holds for files placed since the group
    /// was last without active downloads. Downloads of the same part of the same URL with equal fields are not distinguished
    /// unless one states more, such as a digest. With ``rename`` the file gets another name.
    public enum ExistingFilePolicy: String, Codable, Hashable, Sendable, CaseIterable {
        /// Succeed without fetching if it is the remote file. Replace it if this library downloaded it from another URL and
        /// it has the remote file's length. Otherwise fail with code `exists`.
        case verify
        /// Succeed without fetching if it is the remote file, as this library's record of it or a given digest proves. Replace a
        /// file without the given digest, and one that this library downloaded, if the remote file has changed or is at another
        /// URL. Any other file, also one that was edited after its download, is replaced only if the remote file is newer or has
        /// another length, as by wget's `-N`. `If-Modified-Since` is not sent then, because a 304 states no length and
        /// would keep a file that was cut off. Files stay until the new one is complete.
        case update
        /// As ``update``, but a file without a record is replaced only if the remote file is newer, whatever their lengths, as by
        /// curl's `-z`. A file that was cut off stays.
        case newer
        /// Succeed without asking the server. Only the digests that are given are compared.
        case skip
        /// Choose another name, with a number. Names of interrupted downloads that have none of the request's URLs or
        /// digests are skipped too.
        case rename
        /// Replace it once the new file is complete.
        case overwrite
        /// Fail.
        case fail
    }

    /// A run of bytes of the remote file.
    public struct Part: Hashable, Codable, Sendable {
        /// The offset of the first byte, from 0.
        public var first: Int64
        /// The offset of the last byte, which is included as in a `Range` field (RFC 9110, section 14.1.2). Nil for the end of
        /// the remote file.
        public var last: Int64?

        public init(first: Int64, last: Int64? = nil) {
            (self.first, self.last) = (first, last)
        }

        /// Whether it is a run of bytes: see ``DownloadRequest/validate()``.
        package var isValid: Bool { self.first >= 0 && self.last.map { $0 >= self.first && $0 < .max } ?? true }
    }

    /// How many connections fetch the file.
    public var segments: Segments = .automatic
    /// Above 0, at most 1. A file's share of connections and bytes is in proportion to it. A value outside is replaced by the
    /// nearest one inside.
    public var priority = 0.5
    /// Body bytes per second, at least 1; nil for no limit.
    public var bytesPerSecond: Int64?
    /// The length in bytes below which no segment is cut, at least 1. Nil: 1 MiB when the file is first divided, and 16 KiB for
    /// what is left at its end.
    public var splitLengthMinimum: Int64?
    /// What to do with a partial download that an earlier run left.
    public var continuation: Continuation = .auto
    /// What to do if the remote file is not the one that the partial download was begun with.
    public var onChange: ChangePolicy = .fail
    /// What to do if the destination exists.
    public var ifExists: ExistingFilePolicy = .verify
    /// Digests that the file must have. If one differs, the download fails with code `integrity` and the final name never appears.
    public var digests: [ExpectedDigest] = []
    /// Digests to compute and report with the result. They are computed while the file is fetched, without reading it again.
    public var computedDigests: [ExpectedDigest.Algorithm] = []
    /// Failures in a row without a byte of progress before the download fails. Nil: 10, and 3 for an origin that was never reached.
    public var retries: Int?
    /// The delay before another attempt. Nil: random, at most half a second, twice that for each further failure, at most 30 s.
    /// A server's `Retry-After` is respected in any case.
    public var retryDelay: Duration?
    /// How long after the last byte of progress another attempt may be made; nil for no limit.
    public var retryTime: Duration?
    /// A connection that receives nothing for this long is replaced. Time spent waiting for the disk does not count.
    public var stallTimeout: Duration = .seconds(30)
    /// The least bytes per second. A connection that is slower for ``speedTime`` is replaced; if all together are, the download
    /// fails with code `network`, and its bytes are kept. Time spent waiting for the disk, a rate limit or another attempt does not
    /// count. Nil for no limit.
    public var speedMinimum: Int64?
    /// How long the speed may be below ``speedMinimum``; at least 0.1 s.
    public var speedTime: Duration = .seconds(30)
    /// The time within which the whole response head must arrive, connecting included. Nil: 10 min if nothing else can bring bytes
    /// of the file, because a server may have to make it first or read it from tape; else 30 s, or twice as long as the slowest
    /// head of the file took.
    public var headTimeout: Duration? {
        get { self.headTimeoutGiven }
        set { self.headTimeoutGiven = newValue }
    }
    /// Stored under a name of its own: earlier versions stored their default of 30 s as `headTimeout`.
    private var headTimeoutGiven: Duration?
    /// The time within which the whole file must arrive, counted from the moment its turn comes, each time it is resumed. Then it
    /// fails with code `network`, and its bytes are kept. Nil for no limit.
    public var timeLimit: Duration?
    /// The longest file accepted, in bytes. A longer one fails with code `space`.
    public var lengthMaximum: Int64 = .max
    /// The length in bytes that the file must have, such as a metalink states it; nil for any. Sources with a file of another
    /// length are not used. If none has the right one, the download fails with code `integrity`.
    public var lengthExpected: Int64?
    /// Fetch and save only this part of the remote file, shorter if the remote file ends before it; nil for the whole file. Digests
    /// and lengths are those of the part. A server that does not support ranges cannot send it: the download fails with code
    /// `protocol`. A part is another file than the whole one and than other parts: none is resumed as another.
    public var part: Part?
    /// Whether a connection may lead to a loopback, link-local, private or other special address. If not, such a connection is
    /// not made, and the download fails with code `policy`, whatever name or redirect led there. The address of a proxy does not
    /// count.
    public var allowsPrivateAddresses = true
    /// A directory that the file must be in: its absolute path, without `.` and `..`; nil for none. The destination's path
    /// must be absolute too, with the group's directory. If the destination is elsewhere, or a symbolic link is on the way from this directory to it at any time, the download fails with code
    /// `policy`. For paths that other users name. Needs Linux 5.6 (`openat2`).
    public var rootDirectory: String?
    /// Whether missing directories are created. If not, a missing directory is an error with code `file`.
    public var createsDirectories = true
    /// Whether a file with a content coding, such as gzip, is accepted and stored as sent. None is requested, but some servers
    /// send it all the same. If not, such a download fails with code `protocol`.
    public var acceptsContentCodings = true
    /// Whether the finished file gets the modification time that the server states.
    public var keepsRemoteTime = false
    /// Whether space for the whole file is reserved before its first byte is written, if the file system can do that. In a
    /// tmpfs it is reserved only for a file that needs more than an eighth of what is free.
    public var allocates = true
    /// When written bytes are made durable. A killed process loses nothing under any policy.
    public var syncPolicy: SyncPolicy = .checkpoint

    public init() {}

    /// With every number inside its range.
    package var clamped: DownloadOptions {
        var options = self
        options.segments = self.segments.clamped
        options.priority = self.priority > 0 ? min(self.priority, 1) : Double.leastNormalMagnitude
        options.bytesPerSecond = self.bytesPerSecond.map { max($0, 1) }
        options.splitLengthMinimum = self.splitLengthMinimum.map { max($0, 1) }
        options.retries = self.retries.map { max($0, 0) }
        options.speedMinimum = self.speedMinimum.map { max($0, 1) }
        options.speedTime = max(self.speedTime, .milliseconds(100))
        return options
    }
}

extension DownloadOptions: Codable {
    /// An option that is missing has its default, so that values stored by earlier versions can be read.
    public init(from decoder: any Decoder) throws {
        self.init()
        let values = try decoder.container(keyedBy: CodingKeys.self)
        func read<Value: Decodable>(_ key: CodingKeys, _ path: WritableKeyPath<Self, Value>) throws {
            if let value = try values.decodeIfPresent(Value.self, forKey: key) { self[keyPath: path] = value }
        }
        func read<Value: Decodable>(_ key: CodingKeys, _ path: WritableKeyPath<Self, Value?>) throws {
            self[keyPath: path] = try values.decodeIfPresent(Value.self, forKey: key)
        }
        try read(.segments, \.segments)
        try read(.priority, \.priority)
        try read(.bytesPerSecond, \.bytesPerSecond)
        try read(.splitLengthMinimum, \.splitLengthMinimum)
        try read(.continuation, \.continuation)
        try read(.onChange, \.onChange)
        try read(.ifExists, \.ifExists)
        try read(.digests, \.digests)
        try read(.computedDigests, \.computedDigests)
        try read(.retries, \.retries)
        try read(.retryDelay, \.retryDelay)
        try read(.retryTime, \.retryTime)
        try read(.stallTimeout, \.stallTimeout)
        try read(.speedMinimum, \.speedMinimum)
        try read(.speedTime, \.speedTime)
        try read(.headTimeoutGiven, \.headTimeoutGiven)
        if self.headTimeout == nil { self.headTimeout = try Self.earlierHeadTimeout(from: decoder) }
        try read(.timeLimit, \.timeLimit)
        try read(.lengthMaximum, \.lengthMaximum)
        try read(.lengthExpected, \.lengthExpected)
        try read(.part, \.part)
        try read(.allowsPrivateAddresses, \.allowsPrivateAddresses)
        try read(.rootDirectory, \.rootDirectory)
        try read(.createsDirectories, \.createsDirectories)
        try read(.acceptsContentCodings, \.acceptsContentCodings)
        try read(.keepsRemoteTime, \.keepsRemoteTime)
        try read(.allocates, \.allocates)
        try read(.syncPolicy, \.syncPolicy)
    }

    private enum EarlierKeys: String, CodingKey {
        case headTimeout
    }

    /// The timeout that an earlier version stored, unless it is the default of that version.
    private static func earlierHeadTimeout(from decoder: any Decoder) throws -> Duration? {
        let values = try decoder.container(keyedBy: EarlierKeys.self)
        let time = try values.decodeIfPresent(Duration.self, forKey: .headTimeout)
        return time == .seconds(30) ? nil : time
    }
}

extension DownloadOptions.Segments: Codable {
    /// The number; null for ``automatic``.
    public init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        self = value.decodeNil() ? .automatic : .exactly(try value.decode(Int.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        switch self {
        case .automatic: try value.encodeNil()
        case .exactly(let count): try value.encode(count)
        }
    }
}
