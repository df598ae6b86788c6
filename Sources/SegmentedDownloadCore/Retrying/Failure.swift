/// Why something did not work: a stable word, the facts, and whether trying again can help.
package struct Failure: Error, Hashable, Sendable {
    /// The words of the command's exit status.
    package enum Code: String, Hashable, Sendable, CaseIterable {
        case `internal`, usage, file, network, tls, auth, `protocol`, server
        case integrity, changed, policy, exists, space, state, cancelled
    }

    package let code: Code

    /// Whether another source may do better.
    package var isOfSource: Bool {
        switch self.code {
        case .network, .tls, .auth, .protocol, .server, .policy, .integrity: true
        case .internal, .usage, .file, .changed, .exists, .space, .state, .cancelled: false
        }
    }

    /// One clause with the facts, already safe to print.
    package let message: String
    /// What the reader can do about it.
    package let hint: String?
    /// Whether another attempt may succeed.
    package let isTransient: Bool
    /// The HTTP status that said so.
    package let status: Int?
    /// The system call's error number.
    package let errno: Int32?
    /// How long the origin asked us to wait.
    package let retryAfter: Duration?

    package init(
        _ code: Code,
        _ message: String,
        hint: String? = nil,
        isTransient: Bool = false,
        status: Int? = nil,
        errno: Int32? = nil,
        retryAfter: Duration? = nil
    ) {
        self.code = code
        self.message = message
        self.hint = hint
        self.isTransient = isTransient
        self.status = status
        self.errno = errno
        self.retryAfter = retryAfter
    }
}
