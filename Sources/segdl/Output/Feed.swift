import SegmentedDownload

/// Adds a run's requests to the group, one at a time.
struct Feed {
    /// A request that was added to the group.
    struct Given {
        /// Its place among the run's files.
        var number: Int
        var request: DownloadRequest
        var download: Result<Download, DownloadError>
    }

    private let group: DownloadGroup
    private var rest: ArraySlice<DownloadRequest>
    private var number: Int
    private var first: Given?

    /// Adds the first request.
    ///
    /// - Parameter number: The place of the first request among the run's files.
    /// - Throws: ``DownloadError`` if the first request is refused: the others probably have the same error.
    init(_ requests: [DownloadRequest], to group: DownloadGroup, from number: Int) throws(DownloadError) {
        self.group = group
        self.rest = requests[...]
        self.number = number
        guard let first = self.give() else { return }
        if case .failure(let error) = first.download { throw error }
        self.first = first
    }

    /// Adds the next request; nil after the last one.
    mutating func next() -> Given? {
        guard let first = self.first else { return self.give() }
        self.first = nil
        return first
    }

    private mutating func give() -> Given? {
        guard let request = self.rest.popFirst() else { return nil }
        defer { self.number += 1 }
        do throws(DownloadError) {
            return Given(number: self.number, request: request, download: .success(try self.group.add(request)))
        } catch {
            return Given(number: self.number, request: request, download: .failure(error))
        }
    }
}
