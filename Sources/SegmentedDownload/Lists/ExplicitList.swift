import SegmentedDownloadCore

/// A list of conda's packages, from `conda list --explicit --md5` or `--sha256`: after `@EXPLICIT`, a URL on each line
/// with the digest as its fragment.
struct ExplicitList {
    let drafts: [FileListing.Draft]

    /// Nil if the text is another list.
    init?(_ text: String) throws(ListProblem) {
        var drafts: [FileListing.Draft] = []
        var isExplicit = false
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let words = line.split(whereSeparator: \.isWhitespace)
            guard let word = words.first, !word.hasPrefix("#") else { continue }
            guard isExplicit else {
                guard word == "@EXPLICIT" else { return nil }
                isExplicit = true
                continue
            }
            let place = ListPlace.line(index + 1)
            let parts = word.split(separator: "#", maxSplits: 1)
            guard words.count == 1, let url = parts.first else { throw ListProblem(place, "it is not a URL") }
            drafts.append(
                FileListing.Draft(
                    place: place, url: String(url),
                    digests: try parts.dropFirst().map { (text) throws(ListProblem) in
                        try Self.digest(text, at: place)
                    }))
        }
        guard isExplicit else { return nil }
        self.drafts = drafts
    }

    private static func digest(_ text: Substring, at place: ListPlace) throws(ListProblem) -> ExpectedDigest {
        let hex = String(text.hasPrefix("sha256:") ? text.dropFirst("sha256:".count) : text)
        guard let digest = ExpectedDigest(.md5, hex: hex) ?? ExpectedDigest(.sha256, hex: hex) else {
            throw ListProblem(place, "the URL's fragment is not a digest")
        }
        return digest
    }
}
