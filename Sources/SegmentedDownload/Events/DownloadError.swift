package import SegmentedDownloadCore

/// The reason why a download did not complete.
///
/// Switch on the code. The message states the facts and the hint says what to do. Both are one line and safe to print:
/// text from a server is escaped.
public struct DownloadError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A stable error code. The command derives its exit status from it.
    public enum Code: String, Hashable, Sendable, CaseIterable {
        /// A bug in this library.
        case `internal`
        /// A URL, option or list is malformed.
        case usage
        /// The file system failed: permission, I/O error, or a file deleted during the download.
        case file
        /// Name resolution, connection, reset, stall, truncation or time-out, after retries.
        case network
        /// The certificate or the TLS handshake failed.
        case tls
        /// The origin or the proxy requires credentials (401, 407).
        case auth
        /// The origin violates HTTP in a way that cannot be worked around.
        case `protocol`
        /// The origin answered with another error status, after retries.
        case server
        /// A digest or length is wrong. The file does not get its final name.
        case integrity
        /// The remote file is not the one that the download began with.
        case changed
        /// Forbidden by a local rule, such as a redirect from `https` to `http`.
        case policy
        /// The destination exists and is another file, or another process is fetching it.
        case exists
        /// The disk or quota is full, or the file exceeds a size limit.
        case space
        /// There is no usable partial download to resume.
        case state
        /// The download was cancelled.
        case cancelled
    }

    /// The error code.
    public let code: Code
    /// What happened, in one line.
    public let message: String
    /// What to do about it, in one line.
    public let hint: String?
    /// The HTTP status, if the error comes from a response.
    public let status: Int?
    /// The system's error number, if a system call failed.
    public let errno: Int32?

    public init(_ code: Code, _ message: String, hint: String? = nil, status: Int? = nil, errno: Int32? = nil) {
        self.code = code
        self.message = message
        self.hint = hint
        self.status = status
        self.errno = errno
    }

    package init(_ failure: Failure) {
        self.init(
            Code(rawValue: failure.code.rawValue) ?? .internal, failure.message, hint: failure.hint,
            status: failure.status, errno: failure.errno)
    }

    /// Whether running the same request again resumes the download.
    public var isResumable: Bool {
        switch self.code {
        case .internal, .file, .network, .tls, .auth, .protocol, .server, .space, .changed, .cancelled: true
        case .usage, .integrity, .policy, .exists, .state: false
        }
    }

    public var description: String {
        self.hint.map { "\(self.code.rawValue): \(self.message). \($0)." } ?? "\(self.code.rawValue): \(self.message)."
    }

    /// The error in the form that the engine uses.
    package var failure: Failure {
        Failure(
            Failure.Code(rawValue: self.code.rawValue) ?? .internal, self.message, hint: self.hint,
            status: self.status, errno: self.errno)
    }
}
