import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Holds a finished file against what is known of it, and fetches anew what is damaged.
struct VerifyCommand: FetchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Holds a finished file against its digests, and fetches only what is bad.",
        usage: "segdl verify [--checksum ALGO=HEX] [-i METALINK] [--repair] FILE [URL…]",
        discussion: """
            A file that segdl has fetched says itself what it should be, piece by piece, in an extended attribute (which copying \
            may lose). With --repair the pieces that are damaged are fetched from the URL again; until the file is right it is \
            called FILE.segdl-part. A metalink says of any file what it should be, piece by piece where it has their hashes, and \
            where it is to be had.

              segdl verify file.iso
              segdl verify --checksum sha256=9f86… file.iso
              segdl verify --repair file.iso https://example.org/file.iso
              segdl verify --repair -i file.iso.meta4 file.iso
              segdl verify --json file.iso | jq .damage
            """
    )

    @Argument(help: ArgumentHelp("The file, and behind it where it may be fetched from.", valueName: "FILE"))
    var arguments: [String]

    @Flag(help: "Fetch what is damaged from the URL, the first of which is the source and the others mirrors.")
    var repair = false

    @Option(
        name: [.customShort("i", allowingJoined: true), .customLong("metalink-file"), .customLong("input-metalink")],
        help: ArgumentHelp("A metalink that has the file, or the URL of one.", valueName: "METALINK"))
    var metalink: String?

    @OptionGroup var fetch: FetchOptions

    mutating func validate() throws {
        if self.repair, self.arguments.count < 2, self.metalink == nil {
            throw ValidationError("--repair needs a URL to fetch from, or a metalink")
        }
        if !self.repair, self.arguments.count > 1 {
            throw ValidationError("URLs are of use with --repair only, and one file is verified at a time")
        }
        if !self.fetch.labels.mirror.isEmpty { throw ValidationError("name mirrors behind the URL") }
    }

    func perform() async -> ExitCode {
        let output = LineSink(descriptor: STDOUT_FILENO)
        let errors = LineSink(descriptor: STDERR_FILENO)
        defer {
            output.drain()
            errors.drain()
        }
        let path = self.arguments[0]
        do {
            var sources: [SourceURL] = []
            for url in self.arguments.dropFirst() { sources.append(try SourceURL(url)) }
            let listed = try await self.listed(at: path)
            if sources.isEmpty { sources = listed?.sources ?? [] }
            var digests = try await self.fetch.digests(of: path)
            if let digest = listed?.digest, !digests.contains(digest) { digests.append(digest) }
            let check = try FileCheck(of: path, digests: digests, length: listed?.length, pieces: listed?.pieces)
            if self.fetch.output.json {
                output.send(CheckRecord(check).jsonLine + "\n")
            } else if self.fetch.output.verbosity >= .normal {
                output.send(Self.lines(check).map { $0 + "\n" }.joined())
            }
            if check.isGood { return .ok }
            guard self.repair else {
                errors.send(FailureLine(Self.failure(check), of: nil).text + "\n")
                return .integrity
            }
            // Whatever is wrong with what was said, or with the source, is found before the file loses its name.
            let asked = check.canRepair ? sources : Array(sources.prefix(1))
            let (request, remote) = try await self.answering(asked, length: check.lengthExpected) { sources in
                var request = try self.fetch.draft(sources).request
                request.destination = .file(path)
                request.lengthExpected = listed?.length
                if let metalink = self.metalink, self.arguments.count < 2 {
                    try request.hideIdentity(namedBy: InputFile(path: metalink))
                }
                return request
            }
            let work = FetchOptions.Work(requests: [request])
            if !self.fetch.output.dryRun {
                try await check.beginRepair(from: [request.source] + request.mirrors, as: remote)
            }
            output.drain()
            return await self.fetch.run { () throws(DownloadError) in work }
        } catch {
            let error = DownloadError(wrapping: error)
            errors.send(FailureLine(error, of: nil).text + "\n")
            return ExitCode(error.code)
        }
    }

    /// 8: a metalink may name hundreds, and each may take half a minute not to answer.
    private static let askedMax = 8

    /// A request of the sources in another order: one that has a file as long as it should be comes first, or at least one that answers.
    private func answering(
        _ sources: [SourceURL], length: Int64?, _ request: ([SourceURL]) throws -> DownloadRequest
    ) async throws -> (DownloadRequest, RemoteFile) {
        var second: (DownloadRequest, RemoteFile)?
        var failure: (any Error)?
        for (index, source) in sources.prefix(Self.askedMax).enumerated() {
            let others = sources.enumerated().filter { $0.offset != index }.map(\.element)
            var own = try request([source] + others)
            // What the user says of himself is for the origin he named first.
            if source.origin != sources[0].origin { own.hideIdentity() }
            do {
                let remote = try await self.fetch.probe(own)
                if remote.length == length { return (own, remote) }
                second = second ?? (own, remote)
            } catch {
                failure = failure ?? error
            }
        }
        if let second { return second }
        throw failure ?? DownloadError(.usage, "there is no URL to repair it from")
    }

    /// What the metalink says of the file, if there is one.
    private func listed(at path: String) async throws(DownloadError) -> Metalink.File? {
        guard let metalink = self.metalink else { return nil }
        let list = InputFile(path: metalink)
        let bytes = try await self.fetch.contents(of: list)
        do throws(ListProblem) {
            guard let file = try Metalink(bytes, nil).file(at: path) else {
                throw ListProblem(.element(""), "it names no \(path.lastPathComponent.shown)")
            }
            return file
        } catch {
            throw error.failure(in: list.name)
        }
    }

    private static func lines(_ check: FileCheck) -> [String] {
        var lines: [String] = []
        let name = check.path.shown
        if let length = check.lengthExpected, length != check.length {
            let should = length == check.lengthFetched ? "\(length) were fetched" : "it should have \(length)"
            lines.append("\(name): \(check.length) bytes, and \(should)")
        }
        let should = check.knowsPieces ? "what they should be" : "what was fetched"
        lines += check.damage.map { "\(name): bytes \($0.lowerBound)-\($0.upperBound - 1) are not \(should)" }
        lines += check.digests.map { digest in
            let found = digest.isRight ? "as it should be" : "and is \(digest.found)"
            return "\(name): \(digest.expected.algorithm.rawValue) \(digest.expected.hex), \(found)"
        }
        if check.isGood { lines.append("\(name): good, \(check.length) bytes") }
        return lines
    }

    private static func failure(_ check: FileCheck) -> DownloadError {
        let bad = check.damage.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
        let isLonger = check.lengthExpected.map { $0 < check.length } ?? false
        let what =
            bad > 0
            ? "is damaged in \(ByteCount(bad))"
            : isLonger ? "is longer than it should be" : "has another digest than it should"
        let hint =
            check.canRepair && (bad > 0 || isLonger)
            ? "Fetch that anew: segdl verify --repair \(check.path.shellWord) URL"
            : "Fetch it anew with --if-exists overwrite"
        return DownloadError(.integrity, "\(check.path.shown) \(what)", hint: hint)
    }
}
