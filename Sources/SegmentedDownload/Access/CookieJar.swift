import SegmentedDownloadCore
import Synchronization
public import SystemPackage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A store of cookies, loaded from files or set by servers (RFC 6265).
///
/// Cookies from files belong to the user and are sent only to sources that the user named. A cookie that a server sets
/// is sent back to the hosts of its `Domain`, or without it to the same host, whatever the scheme and port (RFC 6265, section 8.5).
/// A `Domain` that is a public suffix, such as `co.uk`, is rejected, using the
/// system's list (`/usr/share/publicsuffix/public_suffix_list.dat`, Debian package publicsuffix). Without that list,
/// only domains of a single label are rejected.
public final class CookieJar: Sendable {
    private struct Cookie: Hashable {
        var name: String
        var value: String
        var domain: String
        /// Whether it is sent only to exactly this host.
        var isHostOnly: Bool
        var path: String
        var isSecure: Bool
        /// The expiry time in seconds since 1970; `nil` for a session cookie.
        var expires: Double?
        /// Whether it was loaded from a file.
        var isOfUser: Bool

        /// Whether it is as the prefix of its name promises (RFC 6265bis, section 4.1.3).
        var keepsPrefix: Bool {
            let name = self.name.lowercased()
            if name.hasPrefix("__host-") { return self.isSecure && self.isHostOnly && self.path == "/" }
            return self.isSecure || !name.hasPrefix("__secure-")
        }

        func isSamePlace(as other: Cookie) -> Bool {
            self.name == other.name && self.domain == other.domain && self.path == other.path
                && self.isOfUser == other.isOfUser
        }
    }

    /// 300 cookies that servers set, more than the 50 per domain that RFC 6265, section 6.1 requires; each at most 4096
    /// bytes, as in browsers.
    private static let countMax = 300
    private static let lengthMax = 4096

    private let cookies = Mutex<[Cookie]>([])
    private let now: @Sendable () -> Double
    private let suffixes: @Sendable () -> PublicSuffixList?

    public convenience init() {
        self.init { Date().timeIntervalSince1970 }
    }

    /// Creates a store.
    ///
    /// - Parameters:
    ///   - suffixes: Returns the public suffix list; `nil` if the system has none.
    ///   - now: Returns the time in seconds since 1970.
    init(
        suffixes: @escaping @Sendable () -> PublicSuffixList? = { .system }, now: @escaping @Sendable () -> Double
    ) {
        self.suffixes = suffixes
        self.now = now
    }

    // MARK: Files

    /// Adds the cookies of a file in Netscape format, which curl, wget and browser extensions write. Lines of another form are
    /// ignored, as by these programs; a cookie without an expiry time is a session cookie.
    ///
    /// - Throws: ``DownloadError`` with code `file` if the file cannot be read, `usage` with the line number if no line that is not a
    ///   comment has that form.
    public func load(_ path: FilePath) throws(DownloadError) {
        let path = try path.text
        // A pipe such as /dev/fd/0 has no length.
        let bytes =
            path.hasPrefix("/dev/")
            ? try? GuardedFile(contentsOf: path).bytes : FileManager.default.contents(atPath: path).map { Array($0) }
        guard let bytes else { throw DownloadError(.file, "cannot read the cookies in \(path.printable)") }
        try self.load(text: String(decoding: bytes, as: UTF8.self), name: path.printable)
    }

    func load(text: String, name: String) throws(DownloadError) {
        var found: [Cookie] = []
        var malformed: Int?
        let text = text.hasPrefix("\u{FEFF}") ? String(text.unicodeScalars.dropFirst()) : text
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (number, given) in lines.enumerated() {
            var line = given
            // curl's prefix for cookies that are hidden from scripts.
            if line.hasPrefix("#HttpOnly_") { line = line.dropFirst("#HttpOnly_".count) }
            guard !line.hasPrefix("#"), line.contains(where: { !$0.isWhitespace }) else { continue }
            let columns = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard columns.count == 7 || columns.count == 6, !columns[0].isEmpty,
                let expires = columns[4].isEmpty ? 0 : Double(columns[4]),
                Self.isFit(columns[5]), columns.count == 6 || Self.isFit(columns[6])
            else {
                malformed = malformed ?? number + 1
                continue
            }
            let domain = Self.withoutDot(columns[0].lowercased())
            found.append(
                Cookie(
                    name: columns[5], value: columns.count == 7 ? columns[6] : "",
                    domain: domain.hasPrefix(".") ? String(domain.dropFirst()) : domain,
                    isHostOnly: columns[1].uppercased() != "TRUE", path: columns[2].isEmpty ? "/" : columns[2],
                    isSecure: columns[3].uppercased() == "TRUE", expires: expires > 0 ? expires : nil, isOfUser: true))
        }
        if found.isEmpty, let malformed {
            throw DownloadError(
                .usage, "\(name), line \(malformed): not a Netscape cookie (seven columns separated by tabs)")
        }
        self.cookies.withLock { cookies in
            for cookie in found { Self.store(cookie, in: &cookies) }
        }
    }

    // MARK: Servers

    /// Stores the cookies that a response from a URL sets.
    func note(_ fieldValues: [String], from url: SourceURL) {
        let found = fieldValues.compactMap { self.cookie($0, from: url) }
        guard !found.isEmpty else { return }
        self.cookies.withLock { cookies in
            for cookie in found { Self.store(cookie, in: &cookies) }
        }
    }

    private static func store(_ cookie: Cookie, in cookies: inout [Cookie]) {
        // A new value keeps the place of the old one (RFC 6265, section 5.3).
        if let index = cookies.firstIndex(where: { $0.isSamePlace(as: cookie) }) {
            cookies[index] = cookie
            return
        }
        cookies.append(cookie)
        // A server that sets too many cookies replaces the oldest. Cookies from files are kept.
        let excess = cookies.count { !$0.isOfUser } - Self.countMax
        if excess > 0, let oldest = cookies.firstIndex(where: { !$0.isOfUser }) { cookies.remove(at: oldest) }
    }

    private func cookie(_ text: String, from url: SourceURL) -> Cookie? {
        guard text.utf8.count <= Self.lengthMax else { return nil }
        let parts = text.split(separator: ";", omittingEmptySubsequences: false).map(Self.trimmed)
        guard let (name, value) = Self.pair(parts[0]), !name.isEmpty, Self.isFit(name), Self.isFit(value) else {
            return nil
        }
        let host = Self.withoutDot(url.origin.host)
        var cookie = Cookie(
            name: name, value: value, domain: host, isHostOnly: true, path: Self.defaultPath(of: url),
            isSecure: false, isOfUser: false)
        var age: Double?
        for attribute in parts.dropFirst() {
            let (key, value) = Self.pair(attribute) ?? (attribute, "")
            switch key.lowercased() {
            case "domain" where !value.isEmpty:
                let domain = Self.withoutDot(value.hasPrefix(".") ? String(value.dropFirst()) : value).lowercased()
                // The last `Domain` counts (RFC 6265, section 5.3).
                cookie.domain = domain
                // A host that is a public suffix may set cookies for itself.
                cookie.isHostOnly = domain == host && self.isPublicSuffix(domain)
                guard domain == host || Self.isBelow(host, domain) && !self.isPublicSuffix(domain) else {
                    return nil
                }
            case "path": cookie.path = value.hasPrefix("/") ? value : Self.defaultPath(of: url)
            case "secure": cookie.isSecure = true
            case "max-age": age = Self.seconds(value).map { self.now() + $0 } ?? age
            case "expires":
                if cookie.expires == nil, let date = HTTPDate(cookieDate: value) {
                    cookie.expires = Double(date.secondsSinceEpoch)
                }
            default: break
            }
        }
        if cookie.isSecure, url.origin.scheme != "https" { return nil }
        guard cookie.keepsPrefix else { return nil }
        if let age { cookie.expires = age }
        return cookie
    }

    /// A number of seconds as RFC 6265, section 5.2.2 writes it; nil for another text.
    private static func seconds(_ text: String) -> Double? {
        let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
        guard !digits.isEmpty, digits.utf8.allSatisfy(\.isASCIIDigit) else { return nil }
        return Double(text)
    }

    // MARK: Sending

    /// The `Cookie` field value for a request; `nil` if no cookie matches.
    ///
    /// - Parameters:
    ///   - isNamed: Whether the user named the origin.
    ///   - fromFilesOnly: Whether cookies that servers have set are left out.
    func fieldValue(for url: SourceURL, isNamed: Bool, fromFilesOnly: Bool = false) -> String? {
        let now = self.now()
        let host = Self.withoutDot(url.origin.host)
        // Filtered without the lock: the first look at the public suffixes reads their file.
        let fitting = self.cookies.withLock { $0 }.filter { cookie in
            guard cookie.expires.map({ $0 > now }) ?? true, !fromFilesOnly || cookie.isOfUser else { return false }
            guard !cookie.isSecure || url.origin.scheme == "https" else { return false }
            guard Self.isWithin(url.path, cookie.path) else { return false }
            guard cookie.domain != host else { return isNamed || !cookie.isOfUser }
            guard !cookie.isHostOnly, Self.isBelow(host, cookie.domain) else { return false }
            return !cookie.isOfUser || isNamed && !self.isPublicSuffix(cookie.domain)
        }
        guard !fitting.isEmpty else { return nil }
        // Longer paths first; among equal lengths the older cookie first (RFC 6265, section 5.4).
        let ordered = fitting.enumerated().sorted {
            ($1.element.path.utf8.count, $0.offset) < ($0.element.path.utf8.count, $1.offset)
        }
        return ordered.map { "\($0.element.name)=\($0.element.value)" }.joined(separator: "; ")
    }

    // MARK: Matching

    /// A host name without its trailing dot, which does not change the host.
    private static func withoutDot(_ name: String) -> String {
        guard let last = name.lastIndex(where: { $0 != "." }) else { return "" }
        return String(name[...last])
    }

    /// Whether a domain is a public suffix. Without a list, only a single label is one.
    private func isPublicSuffix(_ domain: String) -> Bool {
        guard domain.contains(".") else { return true }
        return self.suffixes()?.contains(domain) ?? false
    }

    /// Whether a host is a subdomain of a domain. Addresses have no subdomains.
    private static func isBelow(_ host: String, _ domain: String) -> Bool {
        guard !domain.isEmpty, host.hasSuffix(".\(domain)"), !host.hasPrefix("[") else { return false }
        return !host.utf8.allSatisfy { ($0 >= 0x30 && $0 <= 0x39) || $0 == UInt8(ascii: ".") }
    }

    private static func isWithin(_ path: String, _ prefix: String) -> Bool {
        path == prefix
            || path.hasPrefix(prefix) && (prefix.hasSuffix("/") || path.dropFirst(prefix.count).hasPrefix("/"))
    }

    private static func defaultPath(of url: SourceURL) -> String {
        guard let slash = url.path.lastIndex(of: "/"), slash != url.path.startIndex else { return "/" }
        return String(url.path[..<slash])
    }

    /// Whether a text has neither a control character, which would end the field, nor a semicolon, which would end the
    /// cookie.
    private static func isFit(_ text: String) -> Bool {
        text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F && $0 != UInt8(ascii: ";") }
    }

    private static func trimmed(_ text: Substring) -> String {
        let isBlank = { (character: Character) in character == " " || character == "\t" }
        let start = text.drop(while: isBlank)
        guard let last = start.lastIndex(where: { !isBlank($0) }) else { return "" }
        return String(start[...last])
    }

    private static func pair(_ text: String) -> (name: String, value: String)? {
        guard let equals = text.firstIndex(of: "=") else { return nil }
        return (Self.trimmed(text[..<equals]), Self.trimmed(text[text.index(after: equals)...]))
    }
}
