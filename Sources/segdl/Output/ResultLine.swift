import SegmentedDownload

/// The message about a completed download.
struct ResultLine {
    private let name: String
    /// The most important first: the size and the time, the rate, and then details.
    private let parts: [String]

    /// The columns to which a name may be shortened for the sake of the first parts, by their number. Other parts are
    /// left out before a name is shortened.
    private static let nameMins = [1: 8, 2: 16, 3: 24]

    init(_ result: DownloadResult) {
        self.name = result.path.string.shown
        let proof = Self.proof(result)
        guard !result.wasAlreadyComplete else {
            let state = result.verifiedBy == .none ? "kept as it is" : "already complete"
            self.parts = ["\(state) (\(proof)), nothing fetched"]
            return
        }
        var size = "\(ByteCount(result.bytes))"
        // More bytes than the length come from overlapping segments and are not reported.
        if result.bytesFetched < result.bytes { size += " (\(ByteCount(result.bytesFetched)) fetched)" }
        let connections = result.connectionsPeak == 1 ? "1 connection" : "\(result.connectionsPeak) connections"
        self.parts =
            [
                "\(size) in \(Seconds(result.duration))", Self.rate(result.bytesFetched, in: result.duration),
                ", \(proof)", ", \(connections)",
            ] + (result.crc32.map { [", crc32 \($0)"] } ?? [])
    }

    /// `file.iso: 1.00 GiB in 12 s (84.2 MiB/s), unchanged (ETag), 4 connections, crc32 1234abcd`
    ///
    /// - Parameter columns: What does not fit is left out: the last parts, and the middle of a long name. Nil for the whole
    ///   text.
    func text(columns: Int? = nil) -> String {
        guard let columns else { return self.text(self.name, self.parts.count) }
        for count in stride(from: self.parts.count, to: 0, by: -1) {
            let room = columns - self.text("", count).columns
            let nameMin = Self.nameMins[count] ?? .max
            if room >= min(self.name.columns, nameMin) { return self.text(self.name.shortened(to: room), count) }
        }
        return self.text(self.name, 1).clipped(to: columns)
    }

    private func text(_ name: String, _ count: Int) -> String { "\(name): \(self.parts.prefix(count).joined())" }

    private static func proof(_ result: DownloadResult) -> String {
        switch result.verifiedBy {
        case .digest where result.digests.isEmpty: "verified by the digests of its pieces"
        case .digest: "verified by \(result.digests.map(\.algorithm.rawValue).joined(separator: " and "))"
        case .etag: "unchanged (ETag)"
        case .lastModified: "unchanged (Last-Modified)"
        case .comparison: "verified by comparing parts of it"
        case .none: "not verified"
        }
    }

    /// The average rate in parentheses; empty if there are no bytes or less than a millisecond passed.
    static func rate(_ bytes: Int64, in duration: Duration) -> String {
        let seconds = Seconds(duration).value
        guard bytes > 0, seconds >= 0.001 else { return "" }
        return " (\(ByteCount.perSecond(Double(bytes) / seconds)))"
    }
}
