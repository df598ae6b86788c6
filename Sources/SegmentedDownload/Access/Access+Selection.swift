import HTTPTypes
import SegmentedDownloadCore

/// What a request selects the representation with, besides its URL.
extension Access {
    /// The values that are sent to the source of a request because the user gave them, and the address that the user gave its
    /// host. Cookies that a server sets are not among them: they are others in each run.
    func selection(of request: DownloadRequest) -> RequestSelection.Values {
        let source = request.source
        var fields = self.fields(for: source, of: request)
        let isNamed = self.isNamed(source, of: request)
        let cookies = [fields[.cookie], self.cookies.fieldValue(for: source, isNamed: isNamed, fromFilesOnly: true)]
        fields[.cookie] = cookies.contains { $0 != nil } ? cookies.compactMap(\.self).joined(separator: "; ") : nil
        var values: RequestSelection.Values = [:]
        for name in Set(fields.map(\.name)) { values[name.canonicalName] = fields[name] }
        // Of a password only that there is one: a hash of it could be searched for.
        let given = values["authorization"].flatMap { Credentials(basic: $0) }
        switch given ?? self.credentials(for: source, of: request) {
        case .basic(let user, _):
            values["authorization"] = "basic"
            values[RequestSelection.user] = user
        case .bearer(let token): values["authorization"] = Credentials.bearer(token: token).fieldValue
        case nil: break
        }
        let address = self.addresses.last { $0.host == source.origin.host && $0.port == source.origin.port }
        values[RequestSelection.address] = address?.address
        return values
    }
}

extension DownloadConfiguration {
    /// What a request selects the representation with, besides its URL: see ``Access/selection(of:)``.
    package func selection(of request: DownloadRequest) -> RequestSelection.Values {
        Access(self).selection(of: request)
    }
}
