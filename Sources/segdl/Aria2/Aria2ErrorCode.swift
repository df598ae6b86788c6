import SegmentedDownload
import SegmentedDownloadService

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// aria2's numbers of errors: the section EXIT STATUS of its manual.
enum Aria2ErrorCode: Int, CaseIterable {
    case none = 0
    case unknown = 1
    case timeout = 2
    case notFound = 3
    case network = 6
    case cannotResume = 8
    case space = 9
    case exists = 13
    case fileInputOutput = 17
    case httpProtocol = 22
    case auth = 24
    case option = 28
    case unavailable = 29
    /// A download that was removed. The manual says that it is not used.
    case removed = 31
    case checksum = 32

    init(_ error: DownloadError) { self.init(error.code, status: error.status, errno: error.errno) }

    /// - Parameters:
    ///   - status: The HTTP status, if the error comes from a response.
    ///   - errno: The system's error number, if a system call failed.
    init(_ code: DownloadError.Code, status: Int? = nil, errno: Int32? = nil) {
        switch code {
        case .network: self = errno == ETIMEDOUT ? .timeout : .network
        case .server: self = Self.status(status)
        case .auth: self = .auth
        case .protocol: self = .httpProtocol
        case .integrity: self = .checksum
        // The part on disk cannot be used, as with a server that does not support resuming.
        case .changed, .state: self = .cannotResume
        case .exists: self = .exists
        case .space: self = .space
        case .file: self = .fileInputOutput
        case .usage: self = .option
        case .cancelled: self = .removed
        // aria2 has no number for TLS either.
        case .tls, .policy, .internal: self = .unknown
        default: self = .unknown
        }
    }

    private static func status(_ status: Int?) -> Self {
        switch status {
        case 404, 410: .notFound
        case 429, 500, 502, 503, 504: .unavailable
        default: .httpProtocol
        }
    }

    /// The number in a string.
    var value: RPCValue { .digits(self.rawValue) }
}
