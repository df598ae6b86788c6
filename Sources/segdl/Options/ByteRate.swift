import ArgumentParser

/// A number of bytes per second as an argument, such as `10M`, `1.5MiB/s`; 0 for no limit, as aria2 has it.
struct ByteRate: Hashable, ExpressibleByArgument {
    /// Bytes per second, absent for no limit.
    let limit: Int64?

    /// As ``ByteCount`` reads it, perhaps with `/s`.
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
    static let standard = Priority(0.5)

    let value: Double

    private init(_ value: Double) { self.value = value }

    init?(argument: String) {
        // The exact form first: it refuses signs, exponents, `inf` and `nan`.
        guard DecimalNumber(argument) != nil, let value = Double(argument), value > 0, value <= 1 else { return nil }
        self.value = value
    }

    var defaultValueDescription: String { "\(self.value)" }
}

/// A number of failures as an argument.
struct RetryCount: Hashable, ExpressibleByArgument {
    let count: Int

    init?(argument: String) {
        guard let count = Int(argument), (0...Int(Int32.max)).contains(count) else { return nil }
        self.count = count
    }
}

/// What a caller wants to find again in events, as an argument: `KEY=VALUE`.
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
