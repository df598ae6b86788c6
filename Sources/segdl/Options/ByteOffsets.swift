import SegmentedDownload
import SegmentedDownloadCore

/// The value of `--range`: `0-499`, or `500-` for all bytes from an offset on.
struct ByteOffsets {
    let part: DownloadOptions.Part

    /// Nil for any other text, such as `-500` or several ranges.
    init?(argument: String) {
        let ends = argument.split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = DecimalDigits(ends[0].utf8)?.exact else { return nil }
        guard !ends[1].isEmpty else {
            self.part = DownloadOptions.Part(first: first)
            return
        }
        guard let last = DecimalDigits(ends[1].utf8)?.exact, first <= last, last < .max else { return nil }
        self.part = DownloadOptions.Part(first: first, last: last)
    }
}
