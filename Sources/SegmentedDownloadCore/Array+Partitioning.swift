extension Array {
    /// The index of the first element for which the predicate is true, or `count` if there is none.
    ///
    /// A binary search: the elements must be ordered so that the predicate is false for a prefix and true for the rest.
    package func partitioningIndex(where belongsInSecond: (Element) -> Bool) -> Int {
        var (low, high) = (0, self.count)
        while low < high {
            let middle = (low + high) / 2
            if belongsInSecond(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
