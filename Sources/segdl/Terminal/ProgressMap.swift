import SegmentedDownload

/// A file as rows of cells, in the order of its bytes.
///
/// Each cell stands for an equal share of the file. It shows how much of the share is written, and whether the rest is
/// being fetched or retried.
struct ProgressMap: Hashable {
    /// How much of a cell is written.
    enum Fill: Hashable {
        case none, some, all
    }

    struct Cell: Hashable {
        var fill = Fill.none
        /// The state of the missing bytes. Of several states a retry takes precedence, then a connection.
        var state = SegmentStatus.State.waiting
    }

    /// The cells of a row.
    let columns: Int
    /// In the order of their bytes. A file with fewer bytes than room has one cell for each byte.
    private(set) var cells: [Cell]
    /// The offset where each cell begins, and the offset where the last one ends.
    private let borders: [Int64]

    /// - Parameters:
    ///   - segments: Ordered and disjoint. Bytes outside of them are not started.
    ///   - completeLength: The file's length in bytes.
    init(_ segments: [SegmentStatus], completeLength: Int64, columns: Int, rows: Int) {
        let length = max(completeLength, 0)
        self.columns = max(columns, 1)
        let count = Int(min(Int64(self.columns * max(rows, 0)), length))
        self.cells = Array(repeating: Cell(), count: count)
        self.borders = Self.borders(of: length, among: count)
        guard count > 0 else { return }
        var written = Array(repeating: Int64(0), count: count)
        // The first cell that the next segment can overlap.
        var first = 0
        for segment in segments {
            let end = min(segment.end ?? length, length)
            let position = min(segment.position, end)
            while first < count - 1, self.borders[first + 1] <= segment.start { first += 1 }
            for index in first..<count {
                let bytes = self.bytes(of: index)
                guard bytes.lowerBound < end else { break }
                first = index
                written[index] += max(min(bytes.upperBound, position) - max(bytes.lowerBound, segment.start), 0)
                let isMissing = min(bytes.upperBound, end) > max(bytes.lowerBound, position)
                if isMissing, segment.state.rank > self.cells[index].state.rank {
                    self.cells[index].state = segment.state
                }
            }
        }
        for index in self.cells.indices where written[index] > 0 {
            let bytes = self.bytes(of: index)
            self.cells[index].fill = written[index] >= bytes.upperBound - bytes.lowerBound ? .all : .some
            if self.cells[index].fill == .all { self.cells[index].state = .done }
        }
    }

    /// Borders of shares whose lengths differ by at most one byte. The product may need more than 64 bits.
    private static func borders(of length: Int64, among count: Int) -> [Int64] {
        guard count > 0 else { return [] }
        return (0...count).map { Int64(Int128($0) * Int128(length) / Int128(count)) }
    }

    /// The bytes that a cell stands for.
    func bytes(of index: Int) -> Range<Int64> { self.borders[index]..<self.borders[index + 1] }

    /// The rows as text, one column for each cell.
    func lines(_ palette: Palette) -> [String] {
        stride(from: 0, to: self.cells.count, by: self.columns).map { start in
            palette.text(self.cells[start..<min(start + self.columns, self.cells.count)])
        }
    }
}

extension SegmentStatus.State {
    /// The state with the highest rank in a cell is shown.
    fileprivate var rank: Int {
        switch self {
        case .done, .waiting: 0
        case .fetching: 1
        case .retrying: 2
        }
    }
}
