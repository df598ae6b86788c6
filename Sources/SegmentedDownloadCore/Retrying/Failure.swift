/// A failure: a stable code, a message with the facts, and whether a retry can help.
package struct Failure: Error, Hashable, Sendable {
    /// The category of a failure. The raw value is the code of the public error.
    package enum Code: String, Hashable, Sendable, CaseIterable {
        case `internal`, usage, file, network, tls, auth, `protocol`, server
        case integrity, changed, policy, exists, space, state, cancelled
    }

    package let code: Code

    /// Whether another source may succeed where this one failed.
    package var mayDifferAtOtherSource: Bool {
        switch self.code {
        case .network, .tls, .auth, .protocol, .server, .policy, .integrity: true
        case .internal, .usage, .file, .changed, .exists, .space, .state, .cancelled: false
        }
    }

    /// One clause with the facts, safe to print.
    package let message: String
    /// What to do, as text. Nil if there is a remedy.
    package let hint: String?
    /// What to do, as a value that the caller renders in its own terms.
    package let remedy: Remedy?
    /// Whether another attempt may succeed.
    package let isTransient: Bool
    /// The HTTP status of the response, if a response caused the failure.
    package let status: Int?
    /// The system call's `errno`, if a system call failed.
    package let errno: Int32?
    /// The delay that the origin asked for in `Retry-After`.
    package let retryAfter: Duration?

    package init(
        _ code: Code,
        _ message: String,
        hint: String? = nil,
        remedy: Remedy? = nil,
        isTransient: Bool = false,
        status: Int? = nil,
        errno: Int32? = nil,
        retryAfter: Duration? = nil
    ) {
        self.code = code
        self.message = message
        self.hint = hint
        self.remedy = remedy
        self.isTransient = isTransient
        self.status = status
        self.errno = errno
        self.retryAfter = retryAfter
    }
}
