extension Array {
    /// The index of the first element that belongs to the second part, by binary search.
    package func partitioningIndex(where belongsInSecond: (Element) -> Bool) -> Int {
        var (low, high) = (0, self.count)
        while low < high {
            let middle = (low + high) / 2
            if belongsInSecond(self[middle]) { high = middle } else { low = middle + 1 }
        }
        return low
    }
}
