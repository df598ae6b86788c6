import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The command's exit statuses. Those up to 8 are wget's.
enum ExitCode: Int32, Hashable, CaseIterable {
    case ok = 0
    case `internal` = 1
    case usage = 2
    case file = 3
    case network = 4
    case tls = 5
    case auth = 6
    case `protocol` = 7
    case server = 8
    case integrity = 9
    case changed = 10
    case policy = 11
    case exists = 12
    case space = 13
    case state = 14
    case daemon = 15
    /// Some of several files failed.
    case partial = 16
    case hangup = 129
    case interrupt = 130
    /// The reader of standard output closed it: 128 + SIGPIPE.
    case pipe = 141
    case terminate = 143

    init(_ code: DownloadError.Code) {
        self =
            switch code {
            case .usage: .usage
            case .file: .file
            case .network: .network
            case .tls: .tls
            case .auth: .auth
            case .protocol: .protocol
            case .server: .server
            case .integrity: .integrity
            case .changed: .changed
            case .policy: .policy
            case .exists: .exists
            case .space: .space
            case .state: .state
            // Only a signal cancels a download.
            case .cancelled: .interrupt
            // `internal`, and codes that this version of the command lacks.
            default: .internal
            }
    }

    init(_ error: DownloadError) {
        self = error.isBrokenPipe ? .pipe : ExitCode(error.code)
    }

    var isSignal: Bool { self.rawValue > 128 }

    /// 128 + the signal's number, as in shells.
    init(signal: CInt) {
        self = ExitCode(rawValue: 128 + signal) ?? .interrupt
    }

    /// Ends the process with this status.
    func leave() -> Never { exit(self.rawValue) }

    /// The stable word in failure lines: `error[word]`.
    var word: String {
        switch self {
        case .hangup, .interrupt, .pipe, .terminate: "signal"
        case .ok, .internal, .usage, .file, .network, .tls, .auth, .protocol, .server, .integrity, .changed, .policy,
            .exists, .space, .state, .daemon, .partial:
            "\(self)"
        }
    }
}

extension DownloadError {
    /// Whether the reader of standard output closed it. No message is printed then.
    var isBrokenPipe: Bool { self.code == .file && self.errno == EPIPE }
}
