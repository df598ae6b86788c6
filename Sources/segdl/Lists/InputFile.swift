import SegmentedDownload

/// A list of files given with `-i`.
struct InputFile {
    /// A path, `-` for standard input, or a URL.
    let path: String
    let isRemote: Bool

    init(path: String) {
        self.path = path
        self.isRemote = path.contains("://")
    }

    /// The name for messages.
    var name: String {
        if self.isRemote { return (try? SourceURL(self.path))?.description ?? "the list" }
        return self.isStandardInput ? "standard input" : self.path.shown
    }

    var isStandardInput: Bool { self.path == "-" }

    /// Whether its name has a metalink's extension.
    var isMetalink: Bool {
        let name = self.path.lowercased()
        return name.hasSuffix(".meta4") || name.hasSuffix(".metalink")
    }

    /// The whole content of a file on disk, standard input, or a URL.
    ///
    /// - Parameters:
    ///   - lengthMax: The greatest length in bytes accepted from a server.
    ///   - identify: Adds credentials and fields to the request for a URL.
    /// - Throws: ``DownloadError``.
    func contents(
        lengthMax: Int, _ client: DownloadClient, _ identify: (inout DownloadRequest) throws(DownloadError) -> Void
    ) async throws -> [UInt8] {
        guard self.isRemote else { return try self.contents() }
        var request = DownloadRequest(try SourceURL(self.path))
        try identify(&request)
        return try await client.bytes(of: request, lengthMaximum: lengthMax)
    }

    /// Calls `body`, and adds the list's name to its error.
    func naming<Value>(_ body: () throws(ListProblem) -> Value) throws(DownloadError) -> Value {
        do throws(ListProblem) { return try body() } catch { throw error.failure(in: self.name) }
    }

    /// An error of the whole list.
    func failure(_ message: String) -> DownloadError { ListProblem(.element(""), message).failure(in: self.name) }

    /// The whole content of a file on disk or standard input.
    func contents() throws(DownloadError) -> [UInt8] {
        let reader = try ListReader(self)
        return try reader.rest(after: [])
    }
}
