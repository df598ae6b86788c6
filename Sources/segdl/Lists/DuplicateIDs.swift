import SegmentedDownload

/// Refuses two files with the same id in one run. Their events could not be told apart.
enum DuplicateIDs {
    static func check(_ requests: [DownloadRequest]) throws(DownloadError) {
        guard requests.contains(where: { $0.id != nil }) else { return }
        var seen: Set<Download.ID> = []
        for (number, request) in requests.enumerated() {
            // The id of a file without one is its number, which must not be the id of another file.
            let id = request.id ?? Download.ID(rawValue: "\(number)")
            guard seen.insert(id).inserted else {
                throw DownloadError(
                    .usage, "two files have the id \"\(id.rawValue.shown)\"",
                    hint: "The id of a file without one is its number, from 0")
            }
        }
    }

    /// Removes the ids if two files have the same one from earlier runs. The ids are then the files' numbers.
    static func drop(_ requests: inout [DownloadRequest]) {
        guard (try? Self.check(requests)) == nil else { return }
        for index in requests.indices { requests[index].id = nil }
    }
}
