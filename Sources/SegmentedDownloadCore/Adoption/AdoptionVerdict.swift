/// Which bytes of another program's partial file are kept, after places in it were compared with the server's.
package enum AdoptionVerdict: Hashable, Sendable {
    /// These bytes, ordered and disjoint, belong to the file as far as the comparison shows.
    case kept([Range<Int64>])
    /// The partial file is of another file, or so damaged that nothing can be said about the rest.
    case foreign

    /// A compared place.
    package struct Place: Hashable, Sendable {
        package let range: Range<Int64>
        package let agrees: Bool

        package init(_ range: Range<Int64>, agrees: Bool) {
            self.range = range
            self.agrees = agrees
        }
    }

    /// 4: a partial file is foreign if more than one of four places differs. Damage is rarer, and another version of the
    /// same file shares more.
    private static let foreignShare = 4

    /// 2: around a place that differs, nothing is kept up to the second place that agrees. The first one may lie between
    /// two parts of the damage.
    private static let marginCount = 2

    /// Decides which bytes are kept. No byte of a place that differs is among them.
    ///
    /// - Parameters:
    ///   - runs: The bytes on disk, ordered and disjoint.
    ///   - zeros: The runs of zeros in them, ordered and disjoint. If a place in one of them differs, zeros stand where
    ///     nothing was written, and none of the runs is kept: a run in which other places agree may be of such zeros
    ///     too, where the file has mostly zeros itself. Places within them say nothing about the other bytes.
    ///   - unstated: The runs of which it is unknown whether they were written, ordered and disjoint. They say nothing
    ///     about the others either.
    ///   - places: The compared places in order, disjoint, each within a run.
    package init(
        runs: [Range<Int64>], zeros: [Range<Int64>] = [], unstated: [Range<Int64>] = [], places: [Place]
    ) {
        let written = places.filter { !zeros.contains($0.range) }
        let telling = written.filter { !unstated.contains($0.range) }
        let differing = telling.count { !$0.agrees }
        guard differing * Self.foreignShare <= telling.count, places.contains(where: \.agrees) else {
            self = .foreign
            return
        }
        var dropped = places.contains { !$0.agrees && zeros.overlaps($0.range) } ? zeros : []
        var rest = written[...]
        for run in runs {
            let own = Array(rest.prefix { $0.range.lowerBound < run.upperBound })
            rest = rest.dropFirst(own.count)
            for index in own.indices where !own[index].agrees {
                let before = own[..<index].reversed().filter(\.agrees).dropFirst(Self.marginCount - 1).first
                let after = own[(index + 1)...].filter(\.agrees).dropFirst(Self.marginCount - 1).first
                let start = before?.range.upperBound ?? run.lowerBound
                dropped.append(start..<(after?.range.lowerBound ?? run.upperBound))
            }
        }
        dropped = dropped.merged()
        let kept = runs.subtracting(dropped)
        self = kept.isEmpty ? .foreign : .kept(kept)
    }
}

extension [Range<Int64>] {
    /// Whether one of these ordered, disjoint ranges contains all of another range.
    fileprivate func contains(_ range: Range<Int64>) -> Bool {
        self.firstEnding(after: range.lowerBound).map {
            $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound
        } ?? false
    }

    /// Whether one of these ordered, disjoint ranges overlaps another range.
    fileprivate func overlaps(_ range: Range<Int64>) -> Bool {
        self.firstEnding(after: range.lowerBound).map { $0.lowerBound < range.upperBound } ?? false
    }

    /// The first range that ends after an offset, by bisection.
    private func firstEnding(after offset: Int64) -> Range<Int64>? {
        var (low, high) = (0, self.count)
        while low < high {
            let middle = (low + high) / 2
            if self[middle].upperBound > offset { high = middle } else { low = middle + 1 }
        }
        return low < self.count ? self[low] : nil
    }
}
