import SegmentedDownload

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Downloads objects for Git LFS, one at a time. Git LFS starts several agents for several objects at once.
///
/// An object is verified against its SHA-256, which is its name. An interrupted one stays in the directory, and the next
/// agent resumes it.
struct TransferAgent {
    let client: DownloadClient
    /// On the file system of the repository, because Git LFS renames finished files.
    let directory: String
    let output: CommandOutput

    /// Handles messages until Git LFS ends.
    ///
    /// - Throws: ``DownloadError`` with code `protocol` if the input is not the protocol's.
    func run() async throws(DownloadError) {
        while let line = readLine() {
            guard line.utf8.count <= TransferMessage.lengthMax,
                let message = try? JSONDecoder().decode(TransferMessage.self, from: Data(line.utf8))
            else {
                throw DownloadError(
                    .protocol, "standard input has a line that is not a message of Git LFS",
                    hint: "Git LFS starts this command; see segdl git-lfs-agent --help")
            }
            switch message.event {
            case .start:
                let isDownload = message.operation == "download"
                self.send(isDownload ? TransferReply() : TransferReply(error: Self.noUploads))
            case .download: self.send(await self.download(message))
            case .upload:
                self.send(TransferReply(event: "complete", oid: message.oid, error: Self.noUploads))
            case .terminate: return
            }
        }
    }

    private static let noUploads = TransferReply.Failure(
        code: ExitCode.usage.rawValue,
        message: "segdl does not upload. Set lfs.customtransfer.segdl.direction to download")

    private func send(_ reply: TransferReply) { self.output.send(reply.line) }

    private func download(_ message: TransferMessage) async -> TransferReply {
        let oid = message.oid ?? ""
        guard let digest = ExpectedDigest(.sha256, hex: oid), digest.hex == oid else {
            return .failed(oid, .protocol, "the object's id \"\(oid.shown)\" is not a SHA-256")
        }
        do throws(DownloadError) {
            guard let action = message.action else {
                throw DownloadError(.usage, "there is no server for the object; segdl is not a standalone agent")
            }
            var request = DownloadRequest(
                try SourceURL(action.href), to: .file(FilePath(self.directory).appending(oid)))
            for (name, value) in action.header ?? [:] {
                guard let field = HTTPField(argument: "\(name): \(value)") else {
                    throw DownloadError(.protocol, "the server's header field \"\(name.shown)\" is malformed")
                }
                request.fields.append(field)
            }
            request.digests = [digest]
            request.lengthExpected = message.size
            // The name is the digest: a file that is there and agrees is complete, any other is replaced.
            request.ifExists = .overwrite
            // The object's name is its digest, so another file than before is no other object.
            request.onChange = .restart
            return .complete(oid, path: try await self.fetch(request, oid).string)
        } catch {
            return .failed(oid, ExitCode(error.code), FailureLine(error, of: nil).text)
        }
    }

    private func fetch(_ request: DownloadRequest, _ oid: String) async throws(DownloadError) -> FilePath {
        try await self.client.withGroup { (group) async throws(DownloadError) in
            let download = try group.add(request)
            var reported: Int64 = 0
            for await event in download.events {
                guard case .progress(let progress) = event, progress.bytesDone > reported else { continue }
                self.send(.progress(oid, done: progress.bytesDone, since: progress.bytesDone - reported))
                reported = progress.bytesDone
            }
            let result = try await download.resultOrNothing()
            if result.bytes > reported { self.send(.progress(oid, done: result.bytes, since: result.bytes - reported)) }
            return result.path
        }
    }
}
