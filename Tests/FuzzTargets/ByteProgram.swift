/// Bytes read as a program: they choose operations and numbers.
struct ByteProgram {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: some Collection<UInt8>) {
        self.rest = Array(bytes)[...]
    }

    var isAtEnd: Bool { self.rest.isEmpty }

    /// Zero at the end.
    mutating func byte() -> UInt8 {
        self.rest.popFirst() ?? 0
    }

    mutating func bytes(_ count: Int) -> [UInt8] {
        let taken = Array(self.rest.prefix(count))
        self.rest = self.rest.dropFirst(count)
        return taken
    }

    mutating func integer() -> UInt64 {
        self.bytes(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// A number from zero to `limit`: small, near the limit, round, or anything. Most mistakes are at the ends.
    mutating func number(upTo limit: Int64) -> Int64 {
        guard limit > 0 else { return 0 }
        let kind = self.byte()
        switch kind & 3 {
        case 0: return min(Int64(self.byte()), limit)
        case 1: return max(limit - Int64(self.byte()), 0)
        case 2: return min(Int64(self.byte()) << Int64(kind >> 2 & 31), limit)
        default: return limit == .max ? Int64(self.integer() >> 1) : Int64(self.integer() % UInt64(limit + 1))
        }
    }
}
