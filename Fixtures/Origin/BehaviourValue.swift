/// A key or value that no ``Behaviour`` has.
struct BehaviourError: Error, CustomStringConvertible {
    var description: String
}

/// The percent-decoded value of one key, parsed as the key requires.
struct BehaviourValue {
    let key: Substring
    let bytes: [UInt8]

    init(key: Substring, bytes: [UInt8]) {
        self.key = key
        self.bytes = bytes
    }

    /// Parses a query's `key=value` or `key`.
    init(item: Substring) {
        let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        self.init(key: parts[0], bytes: parts.count > 1 ? Self.percentDecoded(parts[1]) : [])
    }

    var text: String { String(decoding: self.bytes, as: UTF8.self) }

    /// The parts between the first `max - 1` colons.
    func fields(_ allowed: ClosedRange<Int>) throws -> [BehaviourValue] {
        let splitsMax = allowed.upperBound - 1
        let parts = self.bytes.split(
            separator: UInt8(ascii: ":"), maxSplits: splitsMax, omittingEmptySubsequences: false)
        guard allowed.contains(parts.count) else { throw self.error("has \(parts.count) parts instead of \(allowed)") }
        return parts.map { BehaviourValue(key: self.key, bytes: Array($0)) }
    }

    func integer<Integer: FixedWidthInteger>(_ type: Integer.Type = Integer.self) throws -> Integer {
        guard let value = Integer(self.text) else { throw self.error("is not a number") }
        return value
    }

    /// A number of bytes with an optional K, M, G or T, each 1024 of the one before.
    func byteCount() throws -> Int64 {
        let exponents: [Character: Int64] = ["K": 10, "M": 20, "G": 30, "T": 40]
        let exponent = self.text.uppercased().last.flatMap { exponents[$0] }
        let digits = exponent == nil ? self.text[...] : self.text.dropLast()
        guard let value = Int64(digits), value >= 0 else { throw self.error("is not a number of bytes") }
        let (product, overflow) = value.multipliedReportingOverflow(by: 1 << (exponent ?? 0))
        guard !overflow else { throw self.error("is past the largest offset") }
        return product
    }

    /// A rate or length that is never zero.
    func positiveByteCount() throws -> Int64 {
        let rate = try self.byteCount()
        guard rate > 0 else { throw self.error("is not a number of bytes above zero") }
        return rate
    }

    /// A time such as `250ms` or `2s`.
    func duration() throws -> Duration {
        if self.text.hasSuffix("ms"), let value = UInt32(self.text.dropLast(2)) { return .milliseconds(value) }
        if self.text.hasSuffix("s"), let value = UInt32(self.text.dropLast()) { return .seconds(value) }
        throw self.error("is not a time in ms or s")
    }

    func count() throws -> Behaviour.Count {
        self.text == "all" ? .all : .first(Int(try self.integer(UInt32.self)))
    }

    func status() throws -> Int {
        let status = try self.integer(Int.self)
        guard (200...999).contains(status) else { throw self.error("is not a final status") }
        return status
    }

    /// Requires that the key has no value.
    func flag() throws -> Bool {
        guard self.bytes.isEmpty else { throw self.error("should be absent") }
        return true
    }

    func error(_ problem: String) -> BehaviourError {
        BehaviourError(description: "The value '\(self.text)' of '\(self.key)' \(problem).")
    }

    private static func percentDecoded(_ text: Substring) -> [UInt8] {
        var decoded: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "%"), let value = UInt8(Substring(rest.prefix(2)), radix: 16), rest.count >= 2 {
                decoded.append(value)
                rest = rest.dropFirst(2)
            } else {
                decoded.append(byte)
            }
        }
        return decoded
    }
}
