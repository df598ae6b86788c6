/// The index of each download's entry in an array.
///
/// An array by the download's number, because every event looks one up. Numbers are assigned in sequence but may be added out of
/// order.
package struct DownloadIndices: Hashable, Sendable {
    /// -1 for none.
    private var indices: [Int] = []

    package init() {}

    package subscript(id: DownloadID) -> Int? {
        get {
            guard self.indices.indices.contains(id.rawValue), self.indices[id.rawValue] >= 0 else { return nil }
            return self.indices[id.rawValue]
        }
        set {
            if self.indices.count <= id.rawValue {
                self.indices += Array(repeating: -1, count: id.rawValue + 1 - self.indices.count)
            }
            self.indices[id.rawValue] = newValue ?? -1
        }
    }
}
