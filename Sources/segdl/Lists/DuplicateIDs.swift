import SegmentedDownload

/// Refuses two files of one name in one run: whoever reads the events could not keep them apart.
enum DuplicateIDs {
    static func check(_ requests: [DownloadRequest]) throws(DownloadError) {
        guard requests.contains(where: { $0.id != nil }) else { return }
        var seen: Set<Download.ID> = []
        for (number, request) in requests.enumerated() {
            // A file without a name goes by its number, which must not be another's name either.
            let id = request.id ?? Download.ID(rawValue: "\(number)")
            guard seen.insert(id).inserted else {
                throw DownloadError(
                    .usage, "two files have the id \"\(id.rawValue.shown)\"",
                    hint: "A file without one has its number, from 0")
            }
        }
    }

    /// Has files go by their numbers where the names that they had in earlier runs do not tell them apart.
    static func drop(_ requests: inout [DownloadRequest]) {
        guard (try? Self.check(requests)) == nil else { return }
        for index in requests.indices { requests[index].id = nil }
    }
}
