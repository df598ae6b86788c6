/// A choice of mutations that depends only on their content and the seed, so that it is stable when other code changes.
struct Sample {
    let seed: UInt64

    /// Sorts by a hash of the keys.
    func order<Element>(_ elements: [Element], by key: (Element) -> String) -> [Element] {
        elements.enumerated().map { (hash: self.hash(key($1)), offset: $0, element: $1) }
            .sorted { ($0.hash, $0.offset) < ($1.hash, $1.offset) }.map(\.element)
    }

    /// FNV-1a, finished as SplitMix64, so that similar keys get distant values.
    private func hash(_ key: String) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325 ^ self.seed
        for byte in key.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
        hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
        return hash ^ (hash >> 31)
    }
}
