import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// A partial file of another program that a run begins with.
struct AdoptedPath {
    let path: FilePath
    /// Whether a file that is not shorter than the server's is left alone.
    var onlyIfPartial = false
}

extension FetchRun {
    /// Compares the partial files of other programs, reports the results, and turns them into interrupted downloads. With
    /// `--dry-run` nothing is changed.
    func adopt(_ work: Work, _ configuration: DownloadConfiguration) async throws -> [Adoption] {
        guard !work.adopting.isEmpty else { return [] }
        let lines = LineSink(descriptor: STDOUT_FILENO)
        let messages = LineSink(descriptor: STDERR_FILENO)
        defer {
            lines.drain()
            messages.drain()
        }
        return try await withDownloadClient(configuration) { client in
            var adoptions: [Adoption] = []
            for (index, file) in work.adopting.sorted(by: { $0.key < $1.key }) {
                let request = work.requests[index]
                if file.onlyIfPartial, !(await Adoption.isPartial(file.path, of: try await client.probe(request))) {
                    continue
                }
                let adoption = try await client.adoption(of: file.path, for: request)
                let record = AdoptionRecord(adoption)
                if self.output.json {
                    lines.send(record.jsonLine + "\n")
                } else if self.output.verbosity >= .normal {
                    let advice =
                        request.digests.isEmpty && adoption.bytesKept > 0
                        ? ". Short damage between them may stay unnoticed; --checksum rules it out" : ""
                    messages.send("segdl: \(record.text)\(advice)\n")
                }
                if !self.output.dryRun { try await adoption.begin() }
                adoptions.append(adoption)
            }
            return adoptions
        }
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
