import SegmentedDownload
import SegmentedDownloadCore

/// How the text of an option's value is read.
struct ValueForm<Value: Sendable>: Sendable {
    /// The value's name in the help, such as `SIZE`.
    let name: String
    /// What the value must be, as a phrase for messages: `a size such as 512k or 4M`.
    let expectation: String
    /// Returns nil if the text is not such a value.
    let read: @Sendable (String) -> Value?
    /// The reason why the text is not such a value; nil if ``expectation`` says enough.
    let objection: @Sendable (String) -> String?
    /// All values, if they are few words.
    let words: [String]

    init(
        _ name: String, _ expectation: String, words: [String] = [], read: @escaping @Sendable (String) -> Value?,
        objection: @escaping @Sendable (String) -> String? = { _ in nil }
    ) {
        self.words = words
        self.name = name
        self.expectation = expectation
        self.read = read
        self.objection = objection
    }
}

extension ValueForm where Value == String {
    /// Text that is not empty.
    static func text(_ name: String, _ expectation: String) -> Self {
        Self(name, expectation) { $0.isEmpty ? nil : $0 }
    }

    /// A path, of which ``HomePath`` expands the beginning.
    static func path(_ name: String, _ expectation: String, isDirectory: Bool = false) -> Self {
        Self(
            name, expectation, read: { $0.isEmpty ? nil : HomePath.expanded($0, isDirectory: isDirectory) },
            objection: { HomePath.objection(to: $0, isDirectory: isDirectory) })
    }
}

extension ValueForm where Value == ExpectedDigest {
    static var digest: Self {
        Self(
            "ALGO=HEX", "ALGO=HEX, such as sha256=9f86…", read: { ExpectedDigest($0) },
            objection: { text in
                let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2 else { return nil }
                let names = ExpectedDigest.Algorithm.allCases
                let name = parts[0].lowercased().filter { $0 != "-" }
                guard let algorithm = names.first(where: { $0.rawValue == name }) else {
                    return "the algorithms are \(names.map(\.rawValue).joined(separator: ", "))"
                }
                let digits = 2 * algorithm.length
                guard parts[1].utf8.count != digits else { return "a digit is not hexadecimal" }
                return "\(algorithm.rawValue) has \(digits) hexadecimal digits, and these are \(parts[1].utf8.count)"
            })
    }
}

extension ValueForm where Value == Int64 {
    /// A number of bytes, at least 1.
    static var size: Self {
        Self("SIZE", "a size such as 512k or 4M, and at least 1") { text in
            ByteCount(argument: text).flatMap { $0.bytes > 0 ? $0.bytes : nil }
        }
    }
}

extension ValueForm where Value == Int64? {
    /// Bytes per second; 0 for no limit.
    static var rate: Self {
        Self("RATE", "a rate such as 500k or 2M/s") { text in ByteRate(argument: text).map(\.limit) }
    }
}

extension ValueForm where Value == Duration {
    static var time: Self {
        Self("TIME", "a time such as 30 or 2m") { Seconds(argument: $0)?.duration }
    }
}

extension ValueForm where Value == Int {
    static var count: Self {
        Self("N", "a number") { text in
            Int(text).flatMap { (0...Int(Int32.max)).contains($0) ? $0 : nil }
        }
    }
}

extension ValueForm where Value == HTTPField {
    /// A header field with a fixed name.
    static func field(named field: String, _ name: String) -> Self {
        Self(name, "text without control characters") { HTTPField(argument: "\(field): \($0)") }
    }

    static var field: Self {
        Self("NAME: VALUE", "a header field (NAME: VALUE)") { HTTPField(argument: $0) }
    }
}

extension ValueForm where Value: CaseIterable & RawRepresentable<String> {
    /// One of the words of an enumeration.
    static func word(_ name: String = "HOW") -> Self {
        let words = Value.allCases.map(\.rawValue)
        return Self(name, "one of \(words.joined(separator: ", "))", words: words) { Value(rawValue: $0) }
    }
}
