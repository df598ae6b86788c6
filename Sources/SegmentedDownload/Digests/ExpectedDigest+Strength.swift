package import SegmentedDownloadCore

extension Collection<ExpectedDigest> {
    /// Those with the most bits first. The order does not depend on the collection's.
    package var strongestFirst: [ExpectedDigest] {
        self.sorted {
            ($1.algorithm.length, $0.algorithm.rawValue, $0.hex) < ($0.algorithm.length, $1.algorithm.rawValue, $1.hex)
        }
    }
}
