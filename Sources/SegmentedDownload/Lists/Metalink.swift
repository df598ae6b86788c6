import SegmentedDownloadCore

/// A parsed metalink: names, lengths, digests and sources of files.
///
/// Metalink 4 (RFC 5854, `.meta4`) and Metalink 3 (namespace `http://www.metalinker.org/`, `.metalink`) are supported.
///
/// ```swift
/// let metalink = try Metalink(bytes)
/// for request in metalink.requests(in: "isos") { try group.add(request) }
/// ```
///
/// A metalink often comes from a server, so it is not trusted: each component of a name is sanitised like a name that a
/// server suggests, a document type is rejected, and all quantities are limited. The whole document is read before
/// anything is downloaded.
public struct Metalink: Hashable, Sendable {
    /// One file of a metalink.
    public struct File: Hashable, Sendable {
        /// The path below a directory: components separated by `/`, none of which is hidden or leads out of the
        /// directory.
        public let path: String
        /// The length in bytes; `nil` if the metalink does not state it.
        public let length: Int64?
        /// The digests, one of each supported algorithm, in the order of the document.
        public let digests: [ExpectedDigest]
        /// The digests of the pieces; `nil` if there are none of a supported algorithm.
        public let pieces: PieceDigests?
        /// The HTTP sources, best first; at least one, without duplicates.
        public let sources: [SourceURL]
        /// The number of URLs that were skipped because they are neither `http` nor `https`, such as FTP and BitTorrent
        /// ones.
        public let unsupportedSourceCount: Int
        /// The types of hashes that are ignored because they are not supported, such as `sha-384`, sorted.
        public let unsupportedHashTypes: [String]
        /// The line on which the file's element begins.
        package let line: Int

        /// The strongest digest. A request requires all of them.
        public var digest: ExpectedDigest? { self.digests.max { $0.algorithm.length < $1.algorithm.length } }

        /// The digests of the pieces that a request uses: those of a file without a digest of the whole.
        package var requiredPieces: PieceDigests? { self.digests.isEmpty ? self.pieces : nil }
    }

    public typealias PieceDigests = SegmentedDownloadCore.PieceDigests

    /// The maximum length of a document: 64 MiB.
    package static var lengthMax: Int { MetalinkScanner.lengthMax }

    /// The files in the order of the document; at least one, with distinct paths.
    public let files: [File]

    /// Parses a document.
    ///
    /// - Parameters:
    ///   - bytes: At most 64 MiB of XML, in UTF-8 or in the declared encoding.
    ///   - base: The URL that relative URLs are resolved against, with its user name and password. RFC 5854 allows
    ///     absolute URLs only.
    /// - Throws: ``DownloadError`` with code `usage` if the document is not a metalink or is inconsistent. The message
    ///   names the line.
    public init(_ bytes: some Sequence<UInt8>, relativeTo base: String? = nil) throws(DownloadError) {
        let base = if let base { try ListBase(base) } else { ListBase?.none }
        do throws(ListProblem) {
            try self.init(Array(bytes), base)
        } catch {
            throw error.failure(in: "the metalink")
        }
    }

    package init(_ bytes: [UInt8], _ base: ListBase?) throws(ListProblem) {
        self.files = try MetalinkScanner.files(in: bytes, relativeTo: base)
    }

    /// Whether a text is XML. A list of URLs and a JSON document never begin with `<`.
    package static func isXML(_ bytes: [UInt8]) -> Bool {
        let blanks: [UInt8] = [0x20, 0x09, 0x0A, 0x0D]
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        return bytes[start...].first { !blanks.contains($0) } == UInt8(ascii: "<")
    }
}
