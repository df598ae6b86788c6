import SegmentedDownloadCore

extension Script {
    /// The file of most tests: 64 MiB with a strong tag.
    static let resource = RemoteResource.tagged("\"a\"", length: 64 << 20)

    static let refused = RangeResponse.refused(status: 429, retryAfter: nil)

    /// A download with this number of segments, whose first response was accepted.
    static func fetching(
        _ count: Int, length: Int64 = 64 << 20, _ change: (inout DownloadSettings) -> Void = { _ in }
    ) -> Script {
        Self.fetching(.exactly(count), length: length, change)
    }

    /// A download with this number of segments, each with its response accepted.
    static func receiving(
        _ count: Int, length: Int64 = 64 << 20, _ change: (inout DownloadSettings) -> Void = { _ in }
    ) -> Script {
        var script = Self.fetching(count, length: length, change)
        for lease in 1..<count { script.accept(lease, .tagged("\"a\"", length: length)) }
        return script
    }
}
