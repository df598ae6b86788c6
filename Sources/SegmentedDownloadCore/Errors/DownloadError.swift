/// The reason why a download did not complete.
///
/// Switch on the code. The message states the facts, and the remedy or the hint says what to do. Each is one line and
/// safe to print: text from a server is escaped.
public struct DownloadError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A stable error code.
    ///
    /// Codes may be added in any version, so a `switch` needs a `default`.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// A bug in this library.
        public static let `internal` = Code(rawValue: "internal")
        /// A URL, option or list is malformed.
        public static let usage = Code(rawValue: "usage")
        /// The file system failed: permission, I/O error, or a file deleted during the download.
        public static let file = Code(rawValue: "file")
        /// Name resolution, connection, reset, stall, truncation or time-out, after retries.
        public static let network = Code(rawValue: "network")
        /// The certificate or the TLS handshake failed.
        public static let tls = Code(rawValue: "tls")
        /// The origin or the proxy requires credentials (401, 407).
        public static let auth = Code(rawValue: "auth")
        /// The origin violates HTTP in a way that cannot be worked around.
        public static let `protocol` = Code(rawValue: "protocol")
        /// The origin answered with another error status, after retries.
        public static let server = Code(rawValue: "server")
        /// A digest or length is wrong. The file does not get its final name.
        public static let integrity = Code(rawValue: "integrity")
        /// The remote file is not the one that the download began with.
        public static let changed = Code(rawValue: "changed")
        /// Forbidden by a local rule, such as a redirect from `https` to `http`.
        public static let policy = Code(rawValue: "policy")
        /// The destination exists and is another file, or another process is fetching it.
        public static let exists = Code(rawValue: "exists")
        /// The disk or quota is full, or the file exceeds a size limit.
        public static let space = Code(rawValue: "space")
        /// There is no usable partial download to resume.
        public static let state = Code(rawValue: "state")
        /// The download was cancelled.
        public static let cancelled = Code(rawValue: "cancelled")

        public var description: String { self.rawValue }

        /// Every code of this version.
        package static let allCases: [Code] = [
            .internal, .usage, .file, .network, .tls, .auth, .protocol, .server, .integrity, .changed, .policy, .exists,
            .space, .state, .cancelled,
        ]
    }

    /// The error code.
    public let code: Code
    /// What happened, in one line.
    public let message: String
    /// What to do about it, in one line. Nil if there is a remedy.
    public let hint: String?
    /// What to do about it, as a value that a program can act on or render in its own terms.
    public let remedy: Remedy?
    /// Whether the same request may succeed later without any change.
    public let isTransient: Bool
    /// The HTTP status, if the error comes from a response.
    public let status: Int?
    /// The system's error number, if a system call failed.
    public let errno: Int32?
    /// How long the server asks to wait before the next attempt (`Retry-After`), if the error comes from such a response.
    public let retryAfter: Duration?

    /// - Parameter isTransient: Nil means true for the code `network` and false for others. A status that servers send
    ///   while they are overloaded or restarted makes it true in any case.
    public init(
        _ code: Code, _ message: String, hint: String? = nil, remedy: Remedy? = nil, isTransient: Bool? = nil,
        status: Int? = nil, errno: Int32? = nil, retryAfter: Duration? = nil
    ) {
        self.code = code
        self.message = message
        self.hint = hint
        self.remedy = remedy
        let isTransientStatus = status.map { TransientStatus.contains($0) } ?? false
        self.isTransient = isTransientStatus || (isTransient ?? (code == .network))
        self.status = status
        self.errno = errno
        self.retryAfter = retryAfter
    }

    /// Whether the fetched bytes are kept and a later request may complete the file with them.
    ///
    /// In a new group, adding the request does it. In the group whose download has failed, call ``Download/resume()``:
    /// ``DownloadGroup/add(_:)`` returns that download as it is.
    ///
    /// False for a file that the origin no longer has (404, 410): it takes another URL. The same request may fail again,
    /// see ``isTransient``. For `changed`, set ``DownloadOptions/onChange`` to `restart`.
    public var isResumable: Bool {
        switch self.code {
        case .server: self.status != 404 && self.status != 410
        // Bytes that another program removed from the part are fetched again. A wrong digest is permanent.
        case .integrity: self.isTransient
        case .internal, .file, .network, .tls, .auth, .protocol, .space, .changed, .cancelled: true
        default: false
        }
    }

    /// What to do about it, in one line: the hint, or the remedy's description.
    public var advice: String? { self.hint ?? self.remedy?.description }

    public var description: String {
        self.advice.map { "\(self.code): \(self.message). \($0)." } ?? "\(self.code): \(self.message)."
    }

    /// Whether another source may succeed where this one failed.
    package var mayDifferAtOtherSource: Bool {
        switch self.code {
        case .network, .tls, .auth, .protocol, .server, .policy, .integrity: true
        default: false
        }
    }
}
