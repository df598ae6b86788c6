import SegmentedDownload

/// A file as cells in rows, to be read like text: each cell is an equal share of it, and tells how much of that share is written
/// and what is being done about the rest.
struct ProgressMap: Hashable {
    /// How much of a cell is written.
    enum Fill: Hashable {
        case none, some, all
    }

    struct Cell: Hashable {
        var fill = Fill.none
        /// What is being done about the bytes that are missing; of several things the one that is to be seen: a retry, then a
        /// connection.
        var state = SegmentStatus.State.waiting
    }

    /// The cells of a row.
    let columns: Int
    /// In the order of their bytes. Of a file that has fewer bytes than there is room each byte has one.
    private(set) var cells: [Cell]
    /// Where cells begin, and where the last one ends.
    private let borders: [Int64]

    /// - Parameters:
    ///   - segments: ordered and disjoint; what they leave out is not begun.
    ///   - completeLength: the file's, in bytes.
    init(_ segments: [SegmentStatus], completeLength: Int64, columns: Int, rows: Int) {
        let length = max(completeLength, 0)
        self.columns = max(columns, 1)
        let count = Int(min(Int64(self.columns * max(rows, 0)), length))
        self.cells = Array(repeating: Cell(), count: count)
        self.borders = Self.borders(of: length, among: count)
        guard count > 0 else { return }
        var written = Array(repeating: Int64(0), count: count)
        // The first cell that the next segment can have a part of.
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

    /// Shares of which none has more than one byte more than another. A product of a length and a place among cells may take more
    /// than 64 bits.
    private static func borders(of length: Int64, among count: Int) -> [Int64] {
        guard count > 0 else { return [] }
        return (0...count).map { Int64(Int128($0) * Int128(length) / Int128(count)) }
    }

    /// The bytes that a cell stands for: every byte has one cell.
    func bytes(of index: Int) -> Range<Int64> { self.borders[index]..<self.borders[index + 1] }

    /// The rows as text, each as many columns wide as it has cells.
    func lines(_ palette: Palette) -> [String] {
        stride(from: 0, to: self.cells.count, by: self.columns).map { start in
            palette.text(self.cells[start..<min(start + self.columns, self.cells.count)])
        }
    }
}

extension SegmentStatus.State {
    /// Of what happens in one cell the highest is shown.
    fileprivate var rank: Int {
        switch self {
        case .done, .waiting: 0
        case .fetching: 1
        case .retrying: 2
        }
    }
}
