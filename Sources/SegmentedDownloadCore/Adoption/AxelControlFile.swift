/// A state file of axel, `NAME.st`: what each connection has still to fetch.
///
/// It is what axel has in memory: the number of connections, the number of bytes fetched, and for each connection its
/// position and its end. The number of connections has 2 or 4 bytes, depending on axel's version.
struct AxelControlFile {
    /// The bytes that are not written yet, ordered and disjoint.
    let missing: [Range<Int64>]

    init?(_ bytes: [UInt8]) {
        guard let missing = Self.missing(bytes, countOf: UInt32.self) ?? Self.missing(bytes, countOf: UInt16.self)
        else { return nil }
        self.missing = missing
    }

    private static func missing<Count: FixedWidthInteger>(
        _ bytes: [UInt8], countOf: Count.Type
    ) -> [Range<Int64>]? {
        var reader = ByteReader(bytes[...])
        guard let count: Count = reader.read(), count > 0,
            bytes.count - MemoryLayout<Count>.size - 8 == 16 * Int(count),
            let fetched: Int64 = reader.read(), fetched >= 0
        else { return nil }
        var missing: [Range<Int64>] = []
        for _ in 0..<count {
            guard let position: Int64 = reader.read(), let end: Int64 = reader.read(), position >= 0, end >= 0,
                end < .max
            else { return nil }
            // The end is that of the last byte in some versions, and the one after it in others. A byte that is there is
            // fetched again rather than one that is missing taken for granted.
            if position <= end { missing.append(position..<(end + 1)) }
        }
        return missing.merged()
    }
}
