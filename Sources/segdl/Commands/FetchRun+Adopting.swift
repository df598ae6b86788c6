import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// A partial file of another program that a run begins with.
struct AdoptedPath {
    let path: FilePath
    /// Whether it is a copy that is completed, which replaces the file once its digest was verified. A file that is not
    /// partial, or of which a copy was begun before, is left alone.
    var isCopied = false
    /// Whether an earlier run has renamed it already.
    var isBegun = false
}

extension FetchRun {
    /// Compares the partial files of other programs, reports the results, and turns them into interrupted downloads. With
    /// `--dry-run` nothing is changed.
    ///
    /// A file that cannot be adopted becomes a refused file of the run.
    ///
    /// - Returns: The partial files whose control files are removed once the download is complete, by the index of the
    ///   request.
    func adopt(_ work: inout Work, _ configuration: DownloadConfiguration) async throws -> [Int: FilePath] {
        guard !work.adopting.isEmpty else { return [:] }
        let reports = AdoptionReports(self.output)
        defer { reports.drain() }
        let (requests, adopting) = (work.requests, work.adopting)
        let results = try await withDownloadClient(configuration) { client in
            var results: [Int: Result<AdoptedRequest, DownloadError>] = [:]
            for (index, file) in adopting.sorted(by: { $0.key < $1.key }) {
                do {
                    results[index] = .success(try await self.adopt(file, for: requests[index], client, reports))
                } catch {
                    results[index] = .failure(DownloadError(wrapping: error))
                }
            }
            return results
        }
        var adopted: [Int: FilePath] = [:]
        work.requests = []
        for (index, request) in requests.enumerated() {
            switch results[index] {
            case nil: work.requests.append(request)
            case .success(let result)?:
                adopted[work.requests.count] = result.path
                work.requests.append(result.request)
            case .failure(let error)?:
                work.refused.append((adopting[index]?.path.string ?? "", error))
            }
        }
        return adopted
    }

    /// A request, and the path of the partial file that it completes, if there is one.
    private struct AdoptedRequest: Sendable {
        var request: DownloadRequest
        var path: FilePath?
    }

    private func adopt(
        _ file: AdoptedPath, for request: DownloadRequest, _ client: DownloadClient, _ reports: AdoptionReports
    ) async throws -> AdoptedRequest {
        guard !file.isBegun else { return AdoptedRequest(request: request, path: file.path) }
        var request = request
        if file.isCopied {
            if let saved = await Self.interrupted(file.path) {
                // Resumes the copy that an earlier run began: its manifest says that the file is to be replaced.
                guard saved.options.ifExists == .update else { return AdoptedRequest(request: request) }
                request.ifExists = .update
                return AdoptedRequest(request: request, path: file.path)
            }
            let remote = try await client.probe(request)
            guard await Adoption.isPartial(file.path, of: remote) else { return AdoptedRequest(request: request) }
            let isComplete = try await Self.isComplete(file.path, request, remote)
            guard !isComplete else { return AdoptedRequest(request: request) }
            request.ifExists = .update
        }
        let adoption = try await client.adoption(of: file.path, for: request)
        reports.report(AdoptionRecord(adoption), isVerified: !request.digests.isEmpty, isCopied: file.isCopied)
        if !self.output.dryRun { try await Self.begin(adoption, copying: file.isCopied) }
        return AdoptedRequest(request: request, path: adoption.path)
    }

    private static func begin(_ adoption: Adoption, copying: Bool) async throws(DownloadError) {
        do throws(DownloadError) {
            try await adoption.begin(copying: copying)
        } catch {
            guard copying, error.code == .space else { throw error }
            throw DownloadError(
                .space, error.message, hint: "Free some space, or complete it without a copy: segdl adopt FILE URL")
        }
    }

    /// The interrupted download of a destination; nil if there is none with a part.
    private static func interrupted(_ path: FilePath) async -> SavedDownload? {
        guard FileFacts(path.string + DestinationPaths.partSuffix) != nil else { return nil }
        return try? await SavedDownload(at: path)
    }

    /// Whether a file as long as the server's has the request's digests.
    private static func isComplete(
        _ path: FilePath, _ request: DownloadRequest, _ remote: RemoteFile
    ) async throws(DownloadError) -> Bool {
        guard FileFacts(path.string)?.length == remote.length else { return false }
        return try await FileCheck(of: path, digests: request.digests).digests.allSatisfy(\.matches)
    }
}

/// Writes the results of comparing partial files.
private struct AdoptionReports: Sendable {
    private let output: OutputOptions
    private let lines = LineSink(descriptor: STDOUT_FILENO)
    private let messages = LineSink(descriptor: STDERR_FILENO)

    init(_ output: OutputOptions) {
        self.output = output
    }

    /// - Parameters:
    ///   - isVerified: Whether the complete file will be verified against a digest.
    ///   - isCopied: Whether the file stays, and a copy of it is completed.
    func report(_ record: AdoptionRecord, isVerified: Bool, isCopied: Bool) {
        if self.output.json {
            self.lines.send(record.jsonLine + "\n")
        } else if self.output.verbosity >= .normal {
            let advice =
                if isCopied {
                    ". The file stays as it is until a complete copy matches the digest"
                } else if !isVerified, record.bytesKept > 0 {
                    ". Short damage between them may stay unnoticed; --checksum rules it out"
                } else {
                    ""
                }
            self.messages.send("segdl: \(record.text)\(advice)\n")
        }
    }

    func drain() {
        self.lines.drain()
        self.messages.drain()
    }
}

/// The result of comparing another program's partial file, as a JSON object.
struct AdoptionRecord: Encodable {
    let v = 1
    let event = "adopted"
    let path: String
    let program: String?
    let bytesTotal: Int64
    let bytesFound: Int64
    let bytesKept: Int64
    let bytesCompared: Int64
    let places: Int
    let placesDiffering: Int

    init(_ adoption: Adoption) {
        self.path = adoption.path.string
        self.program = adoption.program
        self.bytesTotal = adoption.bytesTotal
        self.bytesFound = adoption.bytesFound
        self.bytesKept = adoption.bytesKept
        self.bytesCompared = adoption.bytesCompared
        self.places = adoption.placesCompared
        self.placesDiffering = adoption.placesDiffering
    }

    var text: String {
        let source = self.program.map { ", according to \($0)" } ?? ""
        let result =
            self.placesDiffering == 0
            ? "all of \(self.places) places agree"
            : "\(self.placesDiffering) of \(self.places) places differ, so \(ByteCount(self.bytesFound - self.bytesKept)) around them are fetched again"
        return "\(self.path.shown): \(ByteCount(self.bytesFound)) of \(ByteCount(self.bytesTotal)) are there\(source); "
            + "compared \(ByteCount(self.bytesCompared)): \(result)"
    }
}
