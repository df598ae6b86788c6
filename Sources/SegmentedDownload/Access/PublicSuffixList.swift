#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The suffixes below which anybody may register a name, such as `com`, `co.uk` and `github.io`: no cookie is for all hosts below
/// one (<https://publicsuffix.org/list/>).
struct PublicSuffixList: Sendable {
    private var rules: Set<String> = []
    /// The names all of whose children are suffixes: of `*.ck` it is `ck`.
    private var wildcards: Set<String> = []
    /// Children that are none, nevertheless: of `!www.ck` it is `www.ck`.
    private var exceptions: Set<String> = []

    /// Where Debian, Fedora, Arch and others install it. Its private section counts, too.
    private static let path = "/usr/share/publicsuffix/public_suffix_list.dat"

    /// The system's; absent where it has none. Read when it is first asked for.
    static let system: PublicSuffixList? = FileManager.default.contents(atPath: Self.path).map {
        PublicSuffixList(String(decoding: $0, as: UTF8.self))
    }

    /// - Parameter text: A rule a line, up to its first white space; lines that begin with `//` are comments.
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

    /// Whether a domain is a suffix itself: in lower case, in ASCII, without a dot at its end.
    func contains(_ domain: String) -> Bool {
        if self.exceptions.contains(domain) { return false }
        if self.rules.contains(domain) { return true }
        guard let dot = domain.firstIndex(of: ".") else { return true }
        // A rule for less of it than that, and then no more of it is a suffix, or none but `*`, which is for one label.
        return self.wildcards.contains(String(domain[domain.index(after: dot)...]))
    }
}

/// Names of other scripts as the name system has them (RFC 3492).
enum Punycode {
    private static let (base, tMin, tMax, skew, damp) = (36, 1, 26, 38, 700)

    /// A name with each label that is not ASCII encoded.
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

    /// A number of variable length.
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
