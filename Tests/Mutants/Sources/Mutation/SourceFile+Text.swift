extension SourceFile {
    /// The mutated text, and the lines and columns of each site in it, by the site's index.
    ///
    /// - Parameter rejected: Indices of the sites to leave out.
    public func mutated(without rejected: Set<Int>) -> (text: String, places: [Int: ClosedRange<Place>]) {
        // Sites are in pre-order: of two expressions that begin at one offset the first is the outer one.
        let edits = self.sites.indices.filter { !rejected.contains($0) }.flatMap { index in
            self.sites[index].edits.map { (site: index, edit: $0) }
        }.sorted { one, other in
            let (a, b) = (one.edit, other.edit)
            if a.offset != b.offset { return a.offset < b.offset }
            if a.kind.rank != b.kind.rank { return a.kind.rank < b.kind.rank }
            return a.kind == .close ? one.site > other.site : one.site < other.site
        }
        let source = Array(self.text.utf8)
        var (result, read, counted) = ([UInt8](), 0, 0)
        var place = Place(line: 1, column: 1)
        var places: [Int: ClosedRange<Place>] = [:]
        for (site, edit) in edits {
            result += source[read..<edit.offset]
            read = edit.offset
            place.advance(over: result[counted...])
            let start = place
            result += Array(edit.text.utf8)
            place.advance(over: edit.text.utf8)
            counted = result.count
            if case .replace(let length) = edit.kind { read += length }
            places[site] = (places[site]?.lowerBound ?? start)...place
        }
        result += source[read...]
        return (String(decoding: result, as: UTF8.self), places)
    }
}

/// A line and a column, both from 1, the column in bytes.
public struct Place: Hashable, Comparable, Sendable {
    public var line: Int
    public var column: Int

    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    mutating func advance(over bytes: some Sequence<UInt8>) {
        for byte in bytes {
            self.column += 1
            if byte == UInt8(ascii: "\n") {
                self.line += 1
                self.column = 1
            }
        }
    }

    public static func < (a: Place, b: Place) -> Bool { (a.line, a.column) < (b.line, b.column) }
}
