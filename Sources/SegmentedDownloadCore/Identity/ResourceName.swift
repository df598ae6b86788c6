/// The name of a resource: the requested URL and the URL that answered, after all redirects.
///
/// A validator identifies a version of one resource (RFC 9110 §8.8), so validators of resources with different names
/// are not comparable. nginx and Apache make tags from length and modification time, so unrelated files often share
/// one.
package struct ResourceName: Hashable, Sendable {
    /// The requested URL in normal form, without user information, fragment and signature.
    package let requested: String
    /// The URL of the final response, in the same form.
    package let target: String

    package init(requested: String, target: String) {
        self.requested = requested
        self.target = target
    }
}
