/// A file in pieces of equal length, which is how aria2 shows what is fetched.
struct Aria2Pieces: Hashable, Sendable {
    let bytesTotal: Int64
    /// The length of each piece but the last. 1 MiB, aria2's default, and more for files of more than 4 GiB.
    let length: Int64

    /// 4096 pieces: more are not visible, and each answer would be longer than a kilobyte.
    private static let countMax: Int64 = 4096

    init(bytesTotal: Int64) {
        self.bytesTotal = max(bytesTotal, 0)
        var length: Int64 = 1 << 20
        while self.bytesTotal / length >= Self.countMax { length *= 2 }
        self.length = length
    }

    var count: Int { self.bytesTotal == 0 ? 0 : Int((self.bytesTotal - 1) / self.length + 1) }

    /// The complete pieces, a bit for each from the highest bit of the first byte on, in hexadecimal.
    ///
    /// - Parameter ranges: The parts of the file that are present, in any order. Those that touch count as one.
    func bitfield(of ranges: [(start: Int64, end: Int64)]) -> String {
        var bytes = [UInt8](repeating: 0, count: (self.count + 7) / 8)
        var (start, end): (Int64, Int64) = (0, 0)
        func mark() {
            guard end > start else { return }
            let first = Int((start - 1) / self.length + (start > 0 ? 1 : 0))
            let last = end == self.bytesTotal ? self.count : Int(end / self.length)
            for piece in first..<max(first, last) { bytes[piece / 8] |= 0x80 >> UInt8(piece % 8) }
        }
        for range in ranges.sorted(by: { $0.start < $1.start }) {
            let (from, to) = (max(range.start, 0), min(range.end, self.bytesTotal))
            guard to > from else { continue }
            if from > end {
                mark()
                start = from
            }
            end = max(end, to)
        }
        mark()
        return bytes.map { ($0 < 0x10 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
