import SegmentedDownloadCore

/// What a metalink says of files: names, lengths, digests, and where they are to be had.
///
/// Metalink 4 (RFC 5854, `.meta4`) and Metalink 3 (the namespace `http://www.metalinker.org/`, `.metalink`) are read.
///
/// ```swift
/// let metalink = try Metalink(bytes)
/// for request in metalink.requests(in: "isos") { try group.add(request) }
/// ```
///
/// A metalink often comes from a server, so that nothing in it is believed: names are held to what a server may suggest, component
/// by component, a document type or an entity refuses it, and everything that it could have too much of is bounded. All of it is
/// read before anything is begun.
public struct Metalink: Hashable, Sendable {
    /// One file of a metalink.
    public struct File: Hashable, Sendable {
        /// Where it goes below a directory: components with `/` between them, none of which leads out of it or hides the file.
        public let path: String
        /// Bytes that it has, if the metalink says so.
        public let length: Int64?
        /// Its digests, one of each algorithm that is known here, in the order of the document.
        public let digests: [ExpectedDigest]
        /// The digests of its pieces, if there are some of an algorithm that is known here.
        public let pieces: PieceDigests?
        /// Where it is to be had over HTTP, the best one first; at least one, and none twice.
        public let sources: [SourceURL]
        /// How many URLs are left out because they are neither `http` nor `https`, such as those of FTP and BitTorrent.
        public let sourcesLeftOut: Int
        /// The line on which it begins in the document.
        package let line: Int

        /// The strongest of its digests: what a request for it is held to.
        public var digest: ExpectedDigest? { self.digests.max { $0.algorithm.length < $1.algorithm.length } }
    }

    /// Digests of a file's pieces: they tell where it is damaged.
    public struct PieceDigests: Hashable, Sendable {
        /// Bytes in each piece but the last one.
        public let length: Int64
        public let algorithm: ExpectedDigest.Algorithm
        /// The pieces' digests in their order, as lower-case hexadecimal digits.
        public let hexes: [String]
    }

    /// How many bytes of XML are read, 64 MiB.
    package static var lengthMax: Int { MetalinkScanner.lengthMax }

    /// In the order of the document; at least one, and no two of one path.
    public let files: [File]

    /// Reads a document.
    ///
    /// - Parameters:
    ///   - bytes: At most 64 MiB of XML, in UTF-8 or what its declaration says.
    ///   - base: What relative URLs are relative to, with user name and password. RFC 5854 has absolute ones only.
    /// - Throws: ``DownloadError`` with code `usage` that names the line, where the document is no metalink, or says what cannot be
    ///   true.
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

    /// What it says of the file at a path: of the one whose own path is the end of that, or of the only one there is.
    public func file(at path: String) -> File? {
        let named = self.files.filter { path == $0.path || path.hasSuffix("/" + $0.path) }
        return named.max { $0.path.utf8.count < $1.path.utf8.count } ?? (self.files.count == 1 ? self.files[0] : nil)
    }

    /// Whether a text is XML rather than a list of URLs or JSON, none of which begins so.
    package static func isXML(_ bytes: [UInt8]) -> Bool {
        let blanks: [UInt8] = [0x20, 0x09, 0x0A, 0x0D]
        let start = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        return bytes[start...].first { !blanks.contains($0) } == UInt8(ascii: "<")
    }
}
