import ArgumentParser
import SegmentedDownload

/// What may be said of a host: options that end in the request of one file. All others are about what the files of a run share.
enum HostOption: String, Hashable, CaseIterable {
    case header, referer, user, password, cookie, segments, split, priority, retry, tries, dir
    case userAgent = "user-agent"
    case httpUser = "http-user"
    case httpPassword = "http-password"
    case httpPasswd = "http-passwd"
    case bearer = "oauth2-bearer"
    case limitRatePerFile = "limit-rate-per-file"
    case maxDownloadLimit = "max-download-limit"
    case retryDelay = "retry-delay"
    case retryWait = "retry-wait"
    case waitretry
    case retryMaxTime = "retry-max-time"
    case stallTimeout = "stall-timeout"
    case maxTime = "max-time"
    case minSplitSize = "min-split-size"
    case maxFilesize = "max-filesize"
    case fileAllocation = "file-allocation"
    case remoteTime = "remote-time"
    case onChange = "on-change"
    case ifExists = "if-exists"
    case continuation = "continue"
    case noCreateDirs = "no-create-dirs"
    case userInfo = "user-info"

    var isFlag: Bool { self == .remoteTime || self == .noCreateDirs }

    /// What the value should be; nil if it is. The value itself may be a secret.
    func expectation(unmetBy value: String?) -> String? {
        guard !self.isFlag else { return [nil, "true", "false"].contains(value) ? nil : "true or false" }
        let (expected, accepts) = self.form
        return value.map(accepts) == true ? nil : expected
    }

    private var form: (expected: String, accepts: (String) -> Bool) {
        switch self {
        case .header: ("NAME: VALUE, and a field that may be given", { Self.isSent($0) })
        case .userAgent, .referer: ("text without control characters", { Self.isSent("\(self.rawValue): \($0)") })
        case .cookie: ("NAME=VALUE", { $0.contains("=") && Self.isSent("Cookie: \($0)") })
        case .user, .httpUser: ("NAME:PASSWORD or NAME", { !$0.isEmpty })
        case .password, .httpPassword, .httpPasswd:
            ("a password", { !$0.isEmpty })
        case .bearer: ("a token", { token in Self.isValid { $0.credentials = .bearer(token: token) } })
        case .segments, .split: ("N or auto", Self.reads(SegmentCount.self))
        case .priority: ("above 0 and at most 1", Self.reads(Priority.self))
        case .retry, .tries: ("a number", Self.reads(RetryCount.self))
        case .limitRatePerFile, .maxDownloadLimit: ("a rate such as 500k or 2M/s", Self.reads(ByteRate.self))
        case .retryDelay, .retryWait, .waitretry, .retryMaxTime, .stallTimeout, .maxTime:
            ("a time such as 30 or 2m", Self.reads(Seconds.self))
        case .minSplitSize, .maxFilesize:
            ("a size such as 512k or 4M, and at least 1", { ByteCount(argument: $0).map { $0.bytes > 0 } == true })
        case .fileAllocation: Self.oneOf(TransferOptions.FileAllocation.self)
        case .onChange: Self.oneOf(DownloadOptions.ChangePolicy.self)
        case .ifExists: Self.oneOf(DownloadOptions.ExistingFilePolicy.self)
        case .continuation: Self.oneOf(DownloadOptions.Continuation.self)
        case .dir: ("a directory", { !$0.isEmpty })
        case .userInfo: ("KEY=VALUE", Self.reads(UserInfo.self))
        case .remoteTime, .noCreateDirs: ("true or false", { Bool($0) != nil })
        }
    }

    private static func reads<Value: ExpressibleByArgument>(_ type: Value.Type) -> (String) -> Bool {
        { Value(argument: $0) != nil }
    }

    private static func oneOf<Value: ExpressibleByArgument & CaseIterable & RawRepresentable<String>>(
        _ type: Value.Type
    ) -> (String, (String) -> Bool) {
        ("one of \(Value.allCases.map(\.rawValue).joined(separator: ", "))", Self.reads(type))
    }

    private static func isSent(_ field: String) -> Bool {
        guard let field = HeaderField(argument: field) else { return false }
        return Self.isValid { $0.fields = [(field.name, field.value)] }
    }

    /// Whether a request would be taken.
    private static func isValid(_ change: (inout DownloadRequest) -> Void) -> Bool {
        guard let source = try? SourceURL("http://localhost/") else { return false }
        var request = DownloadRequest(source)
        change(&request)
        return (try? request.validate()) != nil
    }

    /// Why a word is none of them, and what to write instead where there is something.
    static func refusal(of word: String) -> String {
        let hint =
            switch word {
            case "limit-rate", "max-overall-download-limit": "write limit-rate-per-file"
            case "checksum", "id", "mirror", "out", "output": "it is about one file"
            default: "it is about all files, and stands above the first section, or is no option"
            }
        let names = Self.allCases.map(\.rawValue).sorted().joined(separator: ", ")
        return "\(word) cannot be said of a host: \(hint). These can: \(names)"
    }
}
