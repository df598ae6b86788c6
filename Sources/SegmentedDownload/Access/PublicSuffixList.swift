#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The public suffixes, below which anyone may register a name, such as `com`, `co.uk` and `github.io`. A cookie must
/// not be set for one.
///
/// Source: <https://publicsuffix.org/list/>.
struct PublicSuffixList: Sendable {
    private var rules: Set<String> = []
    /// The names all of whose direct subdomains are suffixes: `ck` for the rule `*.ck`.
    private var wildcards: Set<String> = []
    /// The names exempt from a wildcard: `www.ck` for the rule `!www.ck`.
    private var exceptions: Set<String> = []

    /// The path on Debian, Fedora, Arch and others. The list's private section counts too.
    private static let path = "/usr/share/publicsuffix/public_suffix_list.dat"

    /// The system's list, read on first use; `nil` if there is none.
    static let system: PublicSuffixList? = FileManager.default.contents(atPath: Self.path).map {
        PublicSuffixList(String(decoding: $0, as: UTF8.self))
    }

    /// Parses a list with one rule a line, up to the first white space. Lines that begin with `//` are comments.
    init(_ text: String) {
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            let word = line.prefix { $0 > 0x20 }
            guard let first = word.first, !word.starts(with: "//".utf8) else { continue }
            let rule = Substring(word)
            if first == UInt8(ascii: "!") {
                self.exceptions.insert(Punycode.encoded(rule.dropFirst()))
            } else if rule.hasPrefix("*.") {
                self.wildcards.insert(Punycode.encoded(rule.dropFirst(2)))
            } else {
                self.rules.insert(Punycode.encoded(rule))
            }
        }
    }

    /// Whether a domain, in lower case, in ASCII and without a trailing dot, is a public suffix.
    func contains(_ domain: String) -> Bool {
        if self.exceptions.contains(domain) { return false }
        if self.rules.contains(domain) { return true }
        guard let dot = domain.firstIndex(of: ".") else { return true }
        // Shorter rules do not make the domain itself a suffix, except for a wildcard one level up.
        return self.wildcards.contains(String(domain[domain.index(after: dot)...]))
    }
}

/// Encodes internationalised domain names (RFC 3492).
enum Punycode {
    private static let (base, tMin, tMax, skew, damp) = (36, 1, 26, 38, 700)

    /// The name with each label that is not ASCII encoded.
    static func encoded(_ name: Substring) -> String {
        guard !name.utf8.allSatisfy({ $0 < 0x80 }) else { return String(name) }
        return name.split(separator: ".", omittingEmptySubsequences: false).map { label in
            label.utf8.allSatisfy { $0 < 0x80 } ? String(label) : "xn--" + Self.encodedLabel(label)
        }.joined(separator: ".")
    }

    private static func encodedLabel(_ label: Substring) -> String {
        let scalars = label.unicodeScalars.map { Int($0.value) }
        var output = scalars.filter { $0 < 0x80 }.map { UInt8($0) }
        let basicCount = output.count
        if basicCount > 0 { output.append(UInt8(ascii: "-")) }
        var (next, delta, bias, handled) = (0x80, 0, 72, basicCount)
        while handled < scalars.count {
            let least = scalars.filter { $0 >= next }.min() ?? next
            delta += (least - next) * (handled + 1)
            next = least
            for scalar in scalars {
                if scalar < next { delta += 1 }
                guard scalar == next else { continue }
                Self.append(delta, bias: bias, to: &output)
                bias = Self.adapted(delta, count: handled + 1, isFirst: handled == basicCount)
                delta = 0
                handled += 1
            }
            delta += 1
            next += 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Appends a variable-length integer (RFC 3492, section 3.3).
    private static func append(_ number: Int, bias: Int, to output: inout [UInt8]) {
        var (rest, position) = (number, Self.base)
        while true {
            let threshold = min(max(position - bias, Self.tMin), Self.tMax)
            guard rest >= threshold else { break }
            output.append(Self.digit(threshold + (rest - threshold) % (Self.base - threshold)))
            rest = (rest - threshold) / (Self.base - threshold)
            position += Self.base
        }
        output.append(Self.digit(rest))
    }

    private static func digit(_ value: Int) -> UInt8 {
        UInt8(value < 26 ? Int(UInt8(ascii: "a")) + value : Int(UInt8(ascii: "0")) + value - 26)
    }

    private static func adapted(_ delta: Int, count: Int, isFirst: Bool) -> Int {
        var delta = isFirst ? delta / Self.damp : delta / 2
        delta += delta / count
        var position = 0
        while delta > (Self.base - Self.tMin) * Self.tMax / 2 {
            delta /= Self.base - Self.tMin
            position += Self.base
        }
        return position + (Self.base - Self.tMin + 1) * delta / (delta + Self.skew)
    }
}
