/// A short document from a server.
package struct FetchedDocument: Sendable {
    package let bytes: [UInt8]
    /// The URL after redirects, which relative URLs of the document are resolved against.
    package let source: SourceURL
    /// The next page (`Link` with `rel=next`); `nil` if there is none.
    package let next: SourceURL?
}
