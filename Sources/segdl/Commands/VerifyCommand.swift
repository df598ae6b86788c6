import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Verifies a finished file, and fetches its damaged pieces again.
struct VerifyCommand: FetchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Verifies a finished file, and repairs it by fetching only the damaged pieces.",
        usage: "segdl verify [--checksum ALGO=HEX] [-i METALINK] [--repair] FILE [URL…]",
        discussion: """
            segdl stores a checksum of each piece in an extended attribute of a file that it has fetched. Copying a \
            file may lose the attribute. With --repair, segdl fetches the damaged pieces from the URL; during the \
            repair the file is called FILE.segdl-part. A metalink provides the digest and the URLs of any file, and \
            the checksums of its pieces if it contains them.

              segdl verify file.iso
              segdl verify --checksum sha256=9f86… file.iso
              segdl verify --repair file.iso https://example.org/file.iso
              segdl verify --repair -i file.iso.meta4 file.iso
              segdl verify --json file.iso | jq .damage
            """
    )

    @Argument(
        help: ArgumentHelp("The file, followed by the URLs to fetch it from.", valueName: "FILE"), completion: .file())
    var arguments: [String]

    @Flag(help: "Fetch the damaged pieces from the URLs. The URLs after the first are mirrors.")
    var repair = false

    @Option(
        name: [.customShort("i", allowingJoined: true), .customLong("metalink-file"), .customLong("input-metalink")],
        help: ArgumentHelp("A metalink that lists the file, or the URL of one.", valueName: "METALINK"))
    var metalink: String?

    @OptionGroup(title: "Transfer") var transfer: TransferOptions
    @OptionGroup(title: "Speed") var limits: LimitOptions
    @OptionGroup(title: "Sources") var labels: LabelOptions
    @OptionGroup(title: "Requests") var identity: IdentityOptions
    @OptionGroup(title: "Network") var network: NetworkOptions
    @OptionGroup(title: "Output") var output: OutputOptions
    @OptionGroup(title: "Hooks") var hooks: HookOptions

    mutating func validate() throws {
        if self.repair, self.arguments.count < 2, self.metalink == nil {
            throw ValidationError("--repair needs a URL or a metalink")
        }
        if !self.repair, self.arguments.count > 1 {
            throw ValidationError("URLs need --repair; give one file at a time")
        }
        if !self.labels.mirror.isEmpty { throw ValidationError("give mirrors after the URL, without --mirror") }
    }

    func perform(_ fetch: FetchRun) async -> ExitCode {
        let lines = LineSink(descriptor: STDOUT_FILENO)
        let errors = LineSink(descriptor: STDERR_FILENO)
        defer {
            lines.drain()
            errors.drain()
        }
        let path = self.arguments[0]
        do {
            var sources: [SourceURL] = []
            for url in self.arguments.dropFirst() { sources.append(try SourceURL(url)) }
            let listed = try await self.listed(at: path, fetch)
            if sources.isEmpty { sources = listed?.sources ?? [] }
            var digests = try await fetch.digests(of: path)
            digests += (listed?.digests ?? []).filter { !digests.contains($0) }
            let check = try await FileCheck(
                of: FilePath(path), digests: digests, length: listed?.length, pieces: listed?.pieces)
            if self.output.json {
                lines.send(CheckRecord(check).jsonLine + "\n")
            } else if self.output.verbosity >= .normal {
                lines.send(Self.lines(check).map { $0 + "\n" }.joined())
            }
            if check.isGood { return .ok }
            guard self.repair else {
                errors.send(FailureLine(Self.failure(check), of: nil).text + "\n")
                return .integrity
            }
            // Errors in the arguments or at the source must be found before the file is renamed.
            let asked = check.canRepair ? sources : Array(sources.prefix(1))
            let (request, remote) = try await self.answering(asked, for: check, fetch) { sources in
                var request = try fetch.draft(sources).request
                request.destination = .file(FilePath(path))
                request.lengthExpected = listed?.length
                if let metalink = self.metalink, self.arguments.count < 2 {
                    try request.removeCredentialsAndFields(namedBy: InputFile(path: metalink))
                }
                return request
            }
            let work = FetchRun.Work(requests: [request])
            if !self.output.dryRun {
                try await check.beginRepair(from: [request.source] + request.mirrors, as: remote)
            }
            lines.drain()
            return await fetch.run { () throws(DownloadError) in work }
        } catch {
            let error = DownloadError(wrapping: error)
            errors.send(FailureLine(error, of: nil).text + "\n")
            return ExitCode(error.code)
        }
    }

    /// 8: a metalink may list hundreds of sources, and each may time out only after half a minute.
    private static let askedMax = 8

    /// A request whose first source has a file that may be the expected one, or else answers at all.
    private func answering(
        _ sources: [SourceURL], for check: FileCheck, _ fetch: FetchRun,
        _ request: ([SourceURL]) throws -> DownloadRequest
    ) async throws -> (DownloadRequest, RemoteFile) {
        var second: (DownloadRequest, RemoteFile)?
        var failure: (any Error)?
        for (index, source) in sources.prefix(Self.askedMax).enumerated() {
            let others = sources.enumerated().filter { $0.offset != index }.map(\.element)
            var own = try request([source] + others)
            // Credentials and fields are for the origin of the first URL only.
            if source.origin != sources[0].origin { own.removeCredentialsAndFields() }
            do {
                let remote = try await fetch.probe(own)
                if remote.length == check.lengthExpected, check.difference(from: remote) == nil { return (own, remote) }
                second = second ?? (own, remote)
            } catch {
                failure = failure ?? error
            }
        }
        if let second { return second }
        throw failure ?? DownloadError(.usage, "there is no URL to repair the file from")
    }

    /// The file's entry in the metalink; nil if no metalink is given.
    private func listed(at path: String, _ fetch: FetchRun) async throws(DownloadError) -> Metalink.File? {
        guard let metalink = self.metalink else { return nil }
        let list = InputFile(path: metalink)
        let bytes = try await fetch.contents(of: list)
        do throws(ListProblem) {
            guard let file = try Metalink(bytes, nil).file(at: FilePath(path)) else {
                throw ListProblem(.element(""), "it does not list \(path.lastPathComponent.shown)")
            }
            return file
        } catch {
            throw error.failure(in: list.name)
        }
    }

    private static func lines(_ check: FileCheck) -> [String] {
        var lines: [String] = []
        let name = check.path.string.shown
        if let length = check.lengthExpected, length != check.length {
            let expected = length == check.lengthFetched ? "\(length) were fetched" : "expected \(length)"
            lines.append("\(name): \(check.length) bytes, \(expected)")
        }
        let reference = check.hasPieceDigests ? "the metalink" : "what was fetched"
        lines += check.damage.map { "\(name): bytes \($0.lowerBound)-\($0.upperBound - 1) differ from \(reference)" }
        lines += check.digests.map { digest in
            let found = digest.matches ? "correct" : "but the file has \(digest.found)"
            return "\(name): \(digest.expected.algorithm.rawValue) \(digest.expected.hex), \(found)"
        }
        if check.isGood { lines.append("\(name): good, \(check.length) bytes") }
        return lines
    }

    private static func failure(_ check: FileCheck) -> DownloadError {
        let bad = check.damage.reduce(0) { $0 + $1.upperBound - $1.lowerBound }
        let isLonger = check.lengthExpected.map { $0 < check.length } ?? false
        let path = check.path.string
        let what =
            bad > 0
            ? "is damaged in \(ByteCount(bad))"
            : isLonger ? "is longer than expected" : "does not have the expected digest"
        guard check.canRepair, bad > 0 || isLonger else {
            return DownloadError(.integrity, "\(path.shown) \(what)", remedy: .fetchAgain)
        }
        return DownloadError(
            .integrity, "\(path.shown) \(what)",
            hint: "To repair it: segdl verify --repair \(path.shellWord) URL")
    }
}
