#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The URL that a list's relative URLs are resolved against. It keeps its user name and password, so that they inherit
/// them.
package struct ListBase: Sendable {
    private let url: URL?
    /// The same without user name and password.
    private let place: URL?

    /// Parses a base URL.
    ///
    /// - Throws: ``DownloadError`` with code `usage` or `policy`, as ``SourceURL/init(_:)`` does.
    package init(_ text: String) throws(DownloadError) {
        self.place = URL(string: try SourceURL(text).string)
        self.url = URL(string: text)
    }

    fileprivate func resolve(_ text: String) -> String { Self.resolve(text, relativeTo: self.url) }

    /// The URL that a text of a list stands for, without the base's user name and password. An absolute URL keeps its text.
    package func place(of text: String) -> String {
        SourceURL.scheme(of: text) == nil ? Self.resolve(text, relativeTo: self.place) : text
    }

    private static func resolve(_ text: String, relativeTo base: URL?) -> String {
        base.flatMap { URL(string: text, relativeTo: $0) }?.absoluteString ?? text
    }
}

extension SourceURL {
    /// Parses a URL of a list.
    package init(_ text: String, at place: ListPlace, relativeTo base: ListBase?) throws(ListProblem) {
        let isRelative = Self.scheme(of: text) == nil
        do throws(DownloadError) {
            try self.init(isRelative ? base?.resolve(text) ?? text : text)
        } catch {
            throw ListProblem(
                place, error.message + (isRelative && base == nil ? ", or give a base for relative URLs" : ""),
                code: error.code)
        }
    }

    /// The scheme of an absolute URL in lower case; `nil` if the URL is relative (RFC 3986, section 3.1).
    static func scheme(of text: String) -> String? {
        let scheme = text.utf8.prefix { byte in
            byte.isASCIILetter || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "+-.".utf8.contains(byte)
        }
        guard let first = scheme.first, first.isASCIILetter,
            text.utf8.dropFirst(scheme.count).first == UInt8(ascii: ":")
        else { return nil }
        return String(Substring(scheme)).lowercased()
    }
}

extension UInt8 {
    fileprivate var isASCIILetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }
}
