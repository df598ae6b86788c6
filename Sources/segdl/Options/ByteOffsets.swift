import SegmentedDownload

/// The value of `--range`: `0-499`, or `500-` for all bytes from an offset on.
struct ByteOffsets {
    let part: DownloadOptions.Part

    /// Nil for any other text, such as `-500` or several ranges.
    init?(argument: String) {
        let ends = argument.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.offset(ends[0]) else { return nil }
        guard !ends[1].isEmpty else {
            self.part = DownloadOptions.Part(first: first)
            return
        }
        guard let last = Self.offset(ends[1]), first <= last, last < .max else { return nil }
        self.part = DownloadOptions.Part(first: first, last: last)
    }

    /// Digits only: `Int64` would accept a sign.
    private static func offset(_ text: Substring) -> Int64? {
        text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int64(text) : nil
    }
}
