import SegmentedDownload

/// An acquire method of apt: downloads the files that apt asks for, one after the other.
///
/// It sends no digests, so that apt computes them itself; apt's trust does not depend on segdl.
struct AptMethod {
    let client: DownloadClient
    let output: CommandOutput

    /// The first message, before apt sends any.
    static let capabilities = AptMessage("100 Capabilities", [("Version", "1.2"), ("Single-Instance", "true")])

    /// Answers messages until apt closes the input.
    func run() async {
        while let message = AptMessage(nextFrom: { readLine() }) {
            guard message.number == 600, let uri = message["URI"] else { continue }
            self.output.send(await self.answer(uri, message).text)
        }
    }

    private func answer(_ uri: String, _ message: AptMessage) async -> AptMessage {
        do throws(DownloadError) {
            guard let path = message["Filename"] else { throw DownloadError(.protocol, "apt names no file") }
            var request = DownloadRequest(try SourceURL(uri), to: .file(FilePath(path)))
            // apt has already decided that it does not want what is there.
            request.ifExists = .overwrite
            // apt cannot start over, and its digests tell whether the file is the right one.
            request.onChange = .restart
            request.keepsRemoteTime = true
            request.digests = Self.digests(in: message)
            // apt repeats failed downloads from other mirrors.
            request.retries = 3
            let size = message["Expected-Size"] ?? message["Maximum-Size"]
            if let size, let length = Int64(size), length > 0 { request.lengthMaximum = length }
            self.output.send(AptMessage("200 URI Start", [("URI", uri), ("Size", message["Expected-Size"])]).text)
            let result = try await self.client.withGroup { [request] (group) async throws(DownloadError) in
                try await group.add(request).resultOrNothing()
            }
            return AptMessage("201 URI Done", [("URI", uri), ("Filename", path), ("Size", "\(result.bytes)")])
        } catch {
            return AptMessage(
                "400 URI Failure",
                [
                    ("URI", uri), ("Message", FailureLine(error, of: nil).text),
                    ("FailReason", error.status.map { "HttpError\($0)" }),
                    ("Transient-Failure", error.isTransient && error.status == nil ? "true" : nil),
                ])
        }
    }

    /// The strongest digest that apt expects.
    private static func digests(in message: AptMessage) -> [ExpectedDigest] {
        let found = [(ExpectedDigest.Algorithm.sha512, "Expected-SHA512"), (.sha256, "Expected-SHA256")]
            .compactMap { algorithm, field in message[field].flatMap { ExpectedDigest(algorithm, hex: $0) } }
        return found.first.map { [$0] } ?? []
    }
}
