/// Removes the query items that sign a URL or limit its validity. Two URLs that differ only in these name one resource.
///
/// Only complete signatures of known schemes are removed: in another URL an item such as `expires` may select the
/// content. An unknown signature costs a comparison of bytes and never leads to a wrong file.
enum QuerySignature {
    private struct Scheme {
        /// The items that identify the scheme, in lower case.
        let required: Set<String>
        /// Other items that belong to the scheme, in lower case.
        var optional: Set<String> = []

        /// Signature version 4 of Amazon S3, and of services that use it with another prefix.
        static func v4(_ prefix: String) -> Scheme {
            let names = { (names: [String]) in Set(names.map { prefix + $0 }) }
            return Scheme(
                required: names(["signature", "credential"]),
                optional: names(["algorithm", "date", "expires", "signedheaders", "security-token"]))
        }
    }

    /// Source: the documentation of Amazon S3 and CloudFront, Google Cloud Storage, Azure Storage and Akamai.
    private static let schemes: [Scheme] = [
        .v4("x-amz-"), .v4("x-goog-"),
        Scheme(required: ["awsaccesskeyid", "signature", "expires"], optional: ["x-amz-security-token"]),
        Scheme(required: ["googleaccessid", "signature", "expires"]),
        Scheme(required: ["key-pair-id", "signature"], optional: ["expires", "policy"]),
        Scheme(
            required: ["sig", "sv", "se"],
            optional: [
                "st", "sp", "sr", "spr", "sip", "skoid", "sktid", "skt", "ske", "sks", "skv", "saoid", "suoid", "scid",
                "jwt",
            ]),
        Scheme(required: ["hdnea"]), Scheme(required: ["hdnts"]), Scheme(required: ["hdntl"]),
    ]

    /// The query without the items of its signatures.
    static func removed(from query: String) -> String {
        let items = query.split(separator: "&", omittingEmptySubsequences: false)
        let names = Set(items.map { Self.name(of: $0) })
        let signing = Self.schemes.filter { $0.required.isSubset(of: names) }.reduce(into: Set<String>()) {
            $0.formUnion($1.required)
            $0.formUnion($1.optional)
        }
        return items.filter { !signing.contains(Self.name(of: $0)) }.joined(separator: "&")
    }

    private static func name(of item: Substring) -> String { item.prefix { $0 != "=" }.lowercased() }
}
