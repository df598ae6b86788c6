/// The name of a resource: the URL that was requested and the URL that answered, after all redirects.
///
/// A validator identifies a version of one resource (RFC 9110 §8.8). Two responses with different names are of different
/// resources, whatever their validators say: nginx and Apache make tags of length and modification time, so unrelated
/// files often share one.
package struct ResourceName: Hashable, Sendable {
    /// The requested URL without user information, fragment and signature, in normal form.
    package let requested: String
    /// The URL of the final response, in the same form.
    package let target: String

    package init(requested: String, target: String) {
        self.requested = requested
        self.target = target
    }
}
