import HTTPTypes
import SegmentedDownloadCore

/// Verifies a short document against the digests that the server states for it, in the head and in the trailers.
struct DocumentCheck {
    private var stated: [ExpectedDigest]

    init(_ announced: AnnouncedDigests) {
        self.stated = [announced.content].compactMap(\.self) + announced.representation
    }

    mutating func add(trailers: HTTPFields) {
        let (representation, content) = AnnouncedDigests.trailing(trailers)
        self.stated += [content].compactMap(\.self) + representation
    }

    /// The first digest that the document does not have; `nil` if it has all of them.
    ///
    /// - Parameter name: The document, for the message.
    func failure(of bytes: [UInt8], _ name: String) -> DownloadError? {
        for digest in self.stated {
            var running = RunningDigest(digest.algorithm)
            bytes.withUnsafeBytes { running.update($0) }
            guard running.hex != digest.hex else { continue }
            return DownloadError(
                .integrity,
                "the \(digest.algorithm.rawValue) of \(name) is \(running.hex), and the server says \(digest.hex)",
                hint: "The response may have been cut off, or the document changed while it was sent: try again")
        }
        return nil
    }
}
