import HTTPTypes
import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

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
        if let user = Self.basicUser(values["authorization"]) {
            values["authorization"] = "basic"
            values[RequestSelection.user] = user
        }
        let address = self.addresses.last { $0.host == source.origin.host && $0.port == source.origin.port }
        values[RequestSelection.address] = address?.address
        return values
    }

    /// The user name of an `Authorization` value (RFC 7617); nil for another scheme.
    private static func basicUser(_ field: String?) -> String? {
        guard let field, field.lowercased().hasPrefix("basic "),
            let bytes = Data(base64Encoded: String(field.dropFirst(6)))
        else { return nil }
        return String(decoding: bytes.prefix { $0 != UInt8(ascii: ":") }, as: UTF8.self)
    }
}

extension DownloadConfiguration {
    /// What a request selects the representation with, besides its URL: see ``Access/selection(of:)``.
    package func selection(of request: DownloadRequest) -> RequestSelection.Values {
        Access(self).selection(of: request)
    }
}
