import ArgumentParser

/// A number of bytes per second as an argument, such as `10M` or `1.5MiB/s`. 0 means no limit, as in aria2.
struct ByteRate: Hashable, ExpressibleByArgument {
    /// Bytes per second; nil for no limit.
    let limit: Int64?

    /// The form of ``ByteCount``, with an optional `/s`.
    init?(argument: String) {
        let text = argument.lowercased()
        guard let count = ByteCount(argument: text.hasSuffix("/s") ? String(text.dropLast(2)) : text) else {
            return nil
        }
        self.limit = count.bytes == 0 ? nil : count.bytes
    }
}

/// A download's weight as an argument: above 0 and at most 1.
struct Priority: Hashable, ExpressibleByArgument {
    let value: Double

    init?(argument: String) {
        // DecimalNumber refuses signs, exponents, `inf` and `nan`.
        guard DecimalNumber(argument) != nil, let value = Double(argument), value > 0, value <= 1 else { return nil }
        self.value = value
    }
}

/// A key and value for the caller's own use, as an argument: `KEY=VALUE`.
struct UserInfo: Hashable, ExpressibleByArgument {
    let key: String
    let value: String

    init?(argument: String) {
        let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty else { return nil }
        self.key = String(parts[0])
        self.value = String(parts[1])
    }
}
