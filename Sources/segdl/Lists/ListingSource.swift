import SegmentedDownload

/// A page, an API's answer or a list of checksums, given with `--list-from`.
struct ListingSource {
    /// What a list names.
    struct Files {
        var files: [FileListing.File] = []
        /// The number of directories that are not followed.
        var directoryCount = 0
    }

    /// 1000: Hugging Face lists a thousand files on a page.
    private static let pagesMax = 1000

    /// The list as an input file. Its path is the URL of the list, or the one that its files are relative to.
    let file: InputFile
    private let source: SourceURL?
    private let isLocal: Bool
    private let place: InputFile

    /// - Parameters:
    ///   - place: A file, `-`, or a URL. The URL of a page for readers stands for the list that belongs to it.
    ///   - base: The URL from which a local list comes.
    init(_ place: String, base: String?) throws(DownloadError) {
        let given = InputFile(path: place)
        self.place = given
        self.isLocal = !given.isRemote
        guard let url = given.isRemote ? place : base else {
            (self.file, self.source) = (given, nil)
            return
        }
        let page = try SourceURL(url)
        let list = try ListingAddress.list(of: page)
        self.source = page.credentials.map { list == page ? page : list.with($0) } ?? list
        self.file = InputFile(path: list.string)
    }

    /// The name for messages.
    var name: String { self.isLocal ? self.place.name : self.file.name }

    /// Reads the list with all its pages.
    func read(_ fetch: FetchRun) async throws(DownloadError) -> Files {
        var files = Files()
        guard !self.isLocal, let source else {
            try self.add(try self.place.contents(), from: self.source, to: &files)
            return files
        }
        do {
            return try await fetch.withClient { client in
                var next: SourceURL? = source
                var (pages, length) = (0, 0)
                while let page = next {
                    guard pages < Self.pagesMax, files.files.count < FileListing.filesMax else {
                        throw ListProblem(.element(""), "it has more than \(pages) pages").failure(in: self.name)
                    }
                    // Credentials are for the server that the user named.
                    guard page.origin == source.origin else {
                        throw ListProblem(.element(""), "its next page is on another server", code: .policy)
                            .failure(in: self.name)
                    }
                    var request = DownloadRequest(page)
                    try fetch.identify(&request)
                    let document = try await client.document(request, lengthMaximum: FileListing.lengthMax - length)
                    pages += 1
                    length += document.bytes.count
                    try self.add(document.bytes, from: document.source.inheriting(from: source), to: &files)
                    next = document.next?.inheriting(from: source)
                }
                return files
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }

    private func add(_ page: [UInt8], from source: SourceURL?, to files: inout Files) throws(DownloadError) {
        do throws(ListProblem) {
            let listing = try FileListing(page, from: source)
            files.files += listing.files
            files.directoryCount += listing.directoryCount
        } catch {
            throw error.failure(in: self.name)
        }
    }
}

extension SourceURL {
    /// The URL with the list's user name and password, if it is on the list's server.
    fileprivate func inheriting(from list: SourceURL) -> SourceURL {
        guard let credentials = list.credentials, self.origin == list.origin else { return self }
        return self.with(credentials)
    }
}
