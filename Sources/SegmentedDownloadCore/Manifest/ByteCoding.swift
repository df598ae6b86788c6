/// Appends integers and strings in the manifest's little-endian encoding.
struct ByteWriter {
    var bytes: [UInt8] = []

    mutating func write(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { self.bytes += $0 }
    }

    mutating func write(_ string: String) {
        self.write(UInt32(string.utf8.count))
        self.bytes += Array(string.utf8)
    }

    mutating func write(_ string: String?) {
        self.write(UInt8(string == nil ? 0 : 1))
        if let string { self.write(string) }
    }

    mutating func write(_ strings: [String]) {
        self.write(UInt32(strings.count))
        for string in strings { self.write(string) }
    }
}

/// Reads the encoding of ``ByteWriter``. Every read returns nil if bytes are missing or malformed.
struct ByteReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) {
        self.rest = bytes
    }

    var isAtEnd: Bool { self.rest.isEmpty }

    mutating func skip(_ count: Int) -> Bool {
        guard self.rest.count >= count else { return false }
        self.rest = self.rest.dropFirst(count)
        return true
    }

    mutating func read(count: Int) -> [UInt8]? {
        let bytes = Array(self.rest.prefix(count))
        return self.skip(count) ? bytes : nil
    }

    mutating func read<Value: FixedWidthInteger>() -> Value? {
        let size = MemoryLayout<Value>.size
        guard self.rest.count >= size else { return nil }
        var value: Value = 0
        for (index, byte) in self.rest.prefix(size).enumerated() {
            value |= Value(truncatingIfNeeded: byte) << (8 * index)
        }
        self.rest = self.rest.dropFirst(size)
        return value
    }

    mutating func readString() -> String? {
        guard let count: UInt32 = self.read(), self.rest.count >= Int(count) else { return nil }
        let string = String(validating: self.rest.prefix(Int(count)), as: UTF8.self)
        self.rest = self.rest.dropFirst(Int(count))
        return string
    }

    /// Nil if the bytes are malformed; `.some(nil)` if the string is absent.
    mutating func readOptionalString() -> String?? {
        guard let flag: UInt8 = self.read() else { return nil }
        switch flag {
        case 0: return .some(nil)
        case 1: return self.readString().map { .some($0) }
        default: return nil
        }
    }

    mutating func readStrings() -> [String]? {
        guard let count: UInt32 = self.read(), Int(count) <= self.rest.count else { return nil }
        var strings: [String] = []
        for _ in 0..<count {
            guard let string = self.readString() else { return nil }
            strings.append(string)
        }
        return strings
    }
}
