import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Prints what a run would fetch, and fetches nothing.
struct DryRun {
    let output: OutputOptions

    func run(_ work: FetchRun.Work, _ configuration: DownloadConfiguration) async throws -> ExitCode {
        let lines = LineSink(descriptor: STDOUT_FILENO)
        let errors = LineSink(descriptor: STDERR_FILENO)
        defer {
            lines.drain()
            errors.drain()
        }
        if let remark = work.remark, self.output.verbosity >= .normal { errors.send("segdl: \(remark)\n") }
        for (path, error) in work.refused { errors.send(FailureLine(error, of: path).text + "\n") }
        let failures = try await withDownloadClient(configuration) { client in
            var failures = work.refused.map { ExitCode($0.error.code) }
            for request in work.requests {
                do {
                    let plan = await PlanRecord(try await client.probe(request), request)
                    lines.send((self.output.json ? plan.jsonLine : plan.text) + "\n")
                } catch {
                    let error = DownloadError(wrapping: error)
                    errors.send(FailureLine(error, of: nil).text + "\n")
                    failures.append(ExitCode(error.code))
                }
            }
            return failures
        }
        guard let first = failures.first else { return .ok }
        return work.requests.count + work.refused.count == 1 ? first : .partial
    }
}

/// What a run would do for a file, as a flat JSON object.
struct PlanRecord: Encodable {
    let v = 1
    let event = "plan"
    let url: String
    let path: String
    let bytesTotal: Int64?
    let bytesDone: Int64
    /// Whether the destination exists. A run would compare it with the server's file first.
    let exists: Bool
    let ranges: Bool
    let validator: String?

    init(_ file: RemoteFile, _ request: DownloadRequest) async {
        self.url = file.redirects.last ?? file.source
        self.path =
            switch request.destination {
            case .file, .stream, .descriptor: request.destination.text
            case .directory(let directory, _): Path.join(directory.string, file.name)
            }
        self.bytesTotal = file.length
        self.bytesDone = (try? await SavedDownload(at: FilePath(self.path)))?.bytesDone ?? 0
        self.exists = access(self.path, F_OK) == 0
        self.ranges = file.supportsRanges
        self.validator = file.validator
    }

    var text: String {
        let length = self.bytesTotal.map { "\(ByteCount($0))" } ?? "of unknown length"
        let kept = self.bytesDone > 0 ? ", of which \(ByteCount(self.bytesDone)) are kept from before" : ""
        let how = self.ranges ? "in segments" : "in one stream: the server does not support ranges"
        return "\(self.path.shown): \(length)\(kept) from \(self.url), \(how)\(self.exists ? "; the file exists" : "")"
    }
}
