import SegmentedDownloadCore
import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The cookies of a run: those of files, and those that servers set (RFC 6265).
///
/// What a file holds is the user's, and goes to sources he named only. What a server sets goes back to where it came from, and to the
/// hosts of its `Domain`; without one also not to another port or scheme, as browsers are about to have it
/// (draft-ietf-httpbis-layered-cookies). A `Domain` below which anybody may register, such as `co.uk`, is refused by the system's list
/// of those (`/usr/share/publicsuffix/public_suffix_list.dat`, Debian's package publicsuffix). Where there is no list, one of a single
/// label is.
public final class CookieJar: Sendable {
    private struct Cookie: Hashable {
        var name: String
        var value: String
        var domain: String
        /// Whether it is for the very host only.
        var isHostOnly: Bool
        var path: String
        var isSecure: Bool
        /// Seconds since 1970; absent, it lives as long as the run.
        var expires: Double?
        /// Who set it; absent for a file's.
        var setter: SourceURL.Origin?

        func isSamePlace(as other: Cookie) -> Bool {
            self.name == other.name && self.domain == other.domain && self.path == other.path
                && (self.setter == nil) == (other.setter == nil)
        }
    }

    /// As many as browsers keep of one site (RFC 6265 §6.1 wants 50), and of no greater length than they take.
    private static let countMax = 300
    private static let lengthMax = 4096

    private let cookies = Mutex<[Cookie]>([])
    private let now: @Sendable () -> Double
    private let suffixes: @Sendable () -> PublicSuffixList?

    public convenience init() {
        self.init { Date().timeIntervalSince1970 }
    }

    /// - Parameters:
    ///   - suffixes: asked for a domain that is wider than a host; absent where the system has no list.
    ///   - now: seconds since 1970.
    init(
        suffixes: @escaping @Sendable () -> PublicSuffixList? = { .system }, now: @escaping @Sendable () -> Double
    ) {
        self.suffixes = suffixes
        self.now = now
    }

    // MARK: Files

    /// Adds the cookies of a file in Netscape's form, as curl, wget and browsers' extensions write it.
    ///
    /// - Throws: ``DownloadError``: `file` if it cannot be read, `usage` with the line that makes no sense.
    public func load(_ path: String) throws(DownloadError) {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw DownloadError(.file, "\(path.printable): the cookies cannot be read")
        }
        try self.load(text: String(decoding: data, as: UTF8.self), name: path.printable)
    }

    func load(text: String, name: String) throws(DownloadError) {
        var found: [Cookie] = []
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (number, given) in lines.enumerated() {
            var line = given
            // curl's way to say that scripts do not see it, which are none here.
            if line.hasPrefix("#HttpOnly_") { line = line.dropFirst("#HttpOnly_".count) }
            guard !line.hasPrefix("#"), line.contains(where: { !$0.isWhitespace }) else { continue }
            let columns = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            guard columns.count == 7 || columns.count == 6, !columns[0].isEmpty, let expires = Double(columns[4]),
                Self.isFit(columns[5]), columns.count == 6 || Self.isFit(columns[6])
            else {
                throw DownloadError(
                    .usage, "\(name), line \(number + 1): it is no cookie in Netscape's form (seven columns, with tabs)"
                )
            }
            let domain = Self.withoutDot(columns[0].lowercased())
            found.append(
                Cookie(
                    name: columns[5], value: columns.count == 7 ? columns[6] : "",
                    domain: domain.hasPrefix(".") ? String(domain.dropFirst()) : domain,
                    isHostOnly: columns[1].uppercased() != "TRUE", path: columns[2].isEmpty ? "/" : columns[2],
                    isSecure: columns[3].uppercased() == "TRUE", expires: expires > 0 ? expires : nil))
        }
        self.cookies.withLock { cookies in
            for cookie in found { Self.store(cookie, in: &cookies) }
        }
    }

    // MARK: Servers

    /// Notes what a response from a URL sets.
    func note(_ fieldValues: [String], from url: SourceURL) {
        let found = fieldValues.compactMap { self.cookie($0, from: url) }
        guard !found.isEmpty else { return }
        self.cookies.withLock { cookies in
            for cookie in found { Self.store(cookie, in: &cookies) }
        }
    }

    private static func store(_ cookie: Cookie, in cookies: inout [Cookie]) {
        cookies.removeAll { $0.isSamePlace(as: cookie) }
        cookies.append(cookie)
        // A server that sets ever new ones loses its oldest; what files hold stays.
        let excess = cookies.count { $0.setter != nil } - Self.countMax
        if excess > 0, let oldest = cookies.firstIndex(where: { $0.setter != nil }) { cookies.remove(at: oldest) }
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
            isSecure: false, setter: url.origin)
        var age: Double?
        for attribute in parts.dropFirst() {
            let (key, value) = Self.pair(attribute) ?? (attribute, "")
            switch key.lowercased() {
            case "domain" where !value.isEmpty:
                let domain = Self.withoutDot(value.hasPrefix(".") ? String(value.dropFirst()) : value).lowercased()
                // The last one counts (RFC 6265 §5.3).
                cookie.domain = domain
                cookie.isHostOnly = domain == host
                guard cookie.isHostOnly || Self.isBelow(host, domain) && !self.isPublicSuffix(domain) else {
                    return nil
                }
            case "path" where value.hasPrefix("/"): cookie.path = value
            case "secure": cookie.isSecure = true
            case "max-age": age = Double(value).map { self.now() + $0 } ?? age
            case "expires":
                if cookie.expires == nil, let date = HTTPDate(fieldValue: value) {
                    cookie.expires = Double(date.secondsSinceEpoch)
                }
            default: break
            }
        }
        if cookie.isSecure, url.origin.scheme != "https" { return nil }
        if let age { cookie.expires = age }
        return cookie
    }

    // MARK: Sending

    /// The `Cookie` field's value for a request, if there is one.
    ///
    /// - Parameter isNamed: whether the user named that origin himself.
    func fieldValue(for url: SourceURL, isNamed: Bool) -> String? {
        let now = self.now()
        let host = Self.withoutDot(url.origin.host)
        let fitting = self.cookies.withLock { cookies in
            cookies.filter { cookie in
                guard cookie.expires.map({ $0 > now }) ?? true else { return false }
                guard !cookie.isSecure || url.origin.scheme == "https" else { return false }
                guard Self.isWithin(url.path, cookie.path) else { return false }
                guard let setter = cookie.setter else {
                    return isNamed
                        && (cookie.domain == host
                            || !cookie.isHostOnly && Self.isBelow(host, cookie.domain)
                                && !self.isPublicSuffix(cookie.domain))
                }
                guard !cookie.isHostOnly else { return url.origin == setter }
                return cookie.domain == host || Self.isBelow(host, cookie.domain)
            }
        }
        guard !fitting.isEmpty else { return nil }
        // Longer paths go first; of the same length the older one (RFC 6265 §5.4).
        let ordered = fitting.enumerated().sorted {
            ($1.element.path.utf8.count, $0.offset) < ($0.element.path.utf8.count, $1.offset)
        }
        return ordered.map { "\($0.element.name)=\($0.element.value)" }.joined(separator: "; ")
    }

    // MARK: Matching

    /// A name without the dot at its end that says it is complete: it is the same host.
    private static func withoutDot(_ name: String) -> String {
        guard let last = name.lastIndex(where: { $0 != "." }) else { return "" }
        return String(name[...last])
    }

    /// Whether anybody may register a name below a domain. Without a list, one label is all that is known to be such.
    private func isPublicSuffix(_ domain: String) -> Bool {
        guard domain.contains(".") else { return true }
        return self.suffixes()?.contains(domain) ?? false
    }

    /// Whether a host is below a domain, neither being an address.
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

    /// Neither a control character, which would end the field, nor a semicolon, which would end the cookie.
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
