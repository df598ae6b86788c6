/// The name of a resource: the requested URL and the URL that answered, after all redirects.
///
/// A validator identifies a version of one resource (RFC 9110 §8.8). nginx and Apache make tags from length and
/// modification time, so unrelated files often share one: an equal validator proves nothing for another name. A different
/// one is evidence against the same file as long as one server has made both, see ``ResourceRelation``.
package struct ResourceName: Hashable, Sendable {
    /// The requested URL in normal form, without user information, fragment and signature.
    package let requested: String
    /// The URL of the final response, in the same form.
    package let target: String

    package init(requested: String, target: String) {
        self.requested = requested
        self.target = target
    }

    /// The target without its query.
    var place: Substring { self.target.prefix { $0 != "?" } }

    /// The scheme, host and port of the target: its text before the path.
    package var origin: Substring {
        let scheme = self.target.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1).first?.count ?? 0
        let authority = self.target.utf8.dropFirst(scheme + "://".utf8.count)
        return self.target[..<(authority.firstIndex(of: UInt8(ascii: "/")) ?? self.target.endIndex)]
    }
}
