package import SegmentedDownloadCore

/// Why a download did not complete.
///
/// The code is to switch on, the message has the facts, the hint says what can be done. Both texts are one line each and
/// safe to print: whatever came from a server is escaped.
public struct DownloadError: Error, Hashable, Sendable, CustomStringConvertible {
    /// Stable words; the command's exit statuses are made from them.
    public enum Code: String, Hashable, Sendable, CaseIterable {
        /// A fault of this library.
        case `internal`
        /// A URL, option or list is malformed.
        case usage
        /// The file system failed: permission, I/O error, a file deleted underneath.
        case file
        /// Name lookup, connection, reset, stall, truncation or time-out, after retries.
        case network
        /// The certificate or the handshake failed.
        case tls
        /// The origin wants credentials (401, 407).
        case auth
        /// The origin breaks HTTP in a way there is no way around.
        case `protocol`
        /// The origin answered with another failure status, after retries.
        case server
        /// A digest or length is wrong; the final name never appears.
        case integrity
        /// The remote file is not the one the download began with.
        case changed
        /// Refused by our own rules, such as a redirect from https to http.
        case policy
        /// The destination exists and is something else, or another process has it.
        case exists
        /// The disk, quota or size limit is full.
        case space
        /// There is nothing that could be continued.
        case state
        /// The download was cancelled.
        case cancelled
    }

    /// What to switch on.
    public let code: Code
    /// The facts, in one line.
    public let message: String
    /// What the reader can do about it, in one line.
    public let hint: String?
    /// The HTTP status, where one said so.
    public let status: Int?
    /// The system's error number, where a call failed.
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

    /// Whether running the same download again goes on with what is there.
    public var isResumable: Bool {
        switch self.code {
        case .internal, .file, .network, .tls, .auth, .protocol, .server, .space, .changed, .cancelled: true
        case .usage, .integrity, .policy, .exists, .state: false
        }
    }

    public var description: String {
        self.hint.map { "\(self.code.rawValue): \(self.message). \($0)." } ?? "\(self.code.rawValue): \(self.message)."
    }

    /// The same as a failure within the engine.
    package var failure: Failure {
        Failure(
            Failure.Code(rawValue: self.code.rawValue) ?? .internal, self.message, hint: self.hint,
            status: self.status, errno: self.errno)
    }
}
