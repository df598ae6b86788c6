import SegmentedDownload

/// Adds a run's files to the group, one at a time.
struct Feed<Files: FileSource> {
    /// A file that was added to the group, or why it was not.
    struct Given {
        /// Its place among the run's files.
        var number: Int
        /// What is reported if there is no download.
        var file: TransferFile
        var download: Result<Download, DownloadError>
    }

    enum Step {
        case given(Given)
        /// No file, but there may be more.
        case none
    }

    let files: Files
    private let group: DownloadGroup
    private var number = 0
    private var first: Step?
    /// Whether there may be more files.
    private(set) var hasRest = true

    /// Adds the first file.
    ///
    /// - Throws: ``DownloadError`` if the group refuses the first request of a known number: the others probably have
    ///   the same error.
    init(_ files: Files, to group: DownloadGroup) throws(DownloadError) {
        self.files = files
        self.group = group
        guard let item = self.take() else { return }
        let first = self.give(item)
        if case .request = item, case .given(let given) = first, case .failure(let error) = given.download,
            files.count != nil
        {
            throw error
        }
        self.first = first
    }

    /// Adds the next file; nil after the last one.
    mutating func next() -> Step? {
        guard let first = self.first else { return self.take().map { self.give($0) } }
        self.first = nil
        return first
    }

    private mutating func take() -> FileSourceItem? {
        let item = self.hasRest ? self.files.next() : nil
        self.hasRest = item != nil
        return item
    }

    private mutating func give(_ item: FileSourceItem) -> Step {
        let given: Given
        switch item {
        case .none: return .none
        case .refused(let path, let error):
            given = Given(number: self.number, file: TransferFile(path: path), download: .failure(error))
        case .request(let request):
            let file = TransferFile(refused: request)
            do throws(DownloadError) {
                given = Given(number: self.number, file: file, download: .success(try self.group.add(request)))
            } catch {
                given = Given(number: self.number, file: file, download: .failure(error))
            }
        }
        self.number += 1
        return .given(given)
    }
}
