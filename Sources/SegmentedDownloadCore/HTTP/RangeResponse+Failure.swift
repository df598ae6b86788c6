import HTTPTypes

extension RangeResponse {
    /// The statuses that users meet, with their names.
    private static let reasons: [HTTPResponse.Status] = [
        .badRequest, .forbidden, .notFound, .methodNotAllowed, .notAcceptable, .gone, .unavailableForLegalReasons,
        .notImplemented,
    ]

    /// Whether it has nothing of the file, and says nothing about it.
    var isFailure: Bool {
        switch self {
        case .redirected, .refused, .unauthorized, .rejected, .malformed: true
        case .partial, .whole, .notModified, .unsatisfiable, .changed, .moved, .ignoresRanges: false
        }
    }

    /// The failure to report for a response whose body is not used. Only `refused` is transient.
    package func failure(host: String) -> DownloadError {
        switch self {
        case .refused(let status, let retryAfter):
            let asked = retryAfter.map { " and asks to wait \($0.seconds) s" } ?? ""
            return DownloadError(
                .server, "\(host) answered \(status)\(asked)", isTransient: true, status: status,
                retryAfter: retryAfter?.duration
            )
        case .unauthorized(let status, let challenge):
            let asked = challenge.map { " (\($0.printable(limit: RefusalText.lengthMax)))" } ?? ""
            return DownloadError(
                .auth, "\(host) answered \(status)\(asked)",
                remedy: status == 407 ? .giveProxyCredentials : .giveCredentials, status: status)
        case .rejected(let status, let said):
            let reason = Self.reasons.first { $0.code == status }?.reasonPhrase ?? ""
            let hint: String? =
                switch status {
                case 403, 410: "If the link has expired, resume with a new one"
                case 404: "Trying again will not help: the URL is wrong, or the file was removed or renamed"
                default: nil
                }
            let why = said.map { ": \($0.printable(limit: RefusalText.lengthMax))" } ?? ""
            return DownloadError(
                .server, "\(host) answered \(status)\(reason.isEmpty ? "" : " (\(reason))")\(why)", hint: hint,
                status: status)
        case .malformed(let reason), .ignoresRanges(let reason):
            return DownloadError(.protocol, "\(host): \(reason)")
        case .redirected(let status, _):
            return DownloadError(.server, "\(host) answered \(status): too many redirects", status: status)
        case .changed(let difference):
            return DownloadError(.changed, "the remote file changed: \(difference)")
        case .moved(let difference):
            return DownloadError(
                .changed, "the remote file is another one: \(difference ?? "the URL leads to another place")")
        case .unsatisfiable:
            return DownloadError(.protocol, "\(host) answered 416 to a range that lies within the file", status: 416)
        case .partial, .whole, .notModified:
            return DownloadError(.protocol, "\(host) sent an unexpected response")
        }
    }
}
