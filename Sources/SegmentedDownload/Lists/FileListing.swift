import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The files that a page, an API's answer or a list of checksums names.
///
/// The format is recognised by the content: the page of a directory, a Python package index (PEP 503 and 691), the
/// answers of the APIs of Hugging Face, GitHub, Zenodo and figshare, conda's `repodata.json` and explicit lists, pip's report, and `SHA256SUMS`.
///
/// The bytes are not trusted: every path is a ``ListedPath``, every URL a ``SourceURL``, all quantities are limited, and
/// the whole document is read before anything is downloaded.
package struct FileListing: Hashable, Sendable {
    package struct File: Hashable, Sendable {
        package let place: ListPlace
        /// The path below a directory: components separated by `/`, none of which is hidden or leads out of it.
        package let path: String
        package let source: SourceURL
        /// The digests that the document states, at most one of each algorithm, the strongest first.
        package fileprivate(set) var digests: [ExpectedDigest]
        /// The length in bytes; `nil` if the document does not state it.
        package fileprivate(set) var length: Int64?
    }

    /// 64 MiB: the document is held in memory, and takes several times its size while it is parsed.
    package static let lengthMax = 64 << 20
    /// 100,000: as many as a metalink may have.
    package static let filesMax = 100_000

    /// The files in the order of the document, without duplicates. It may be empty.
    package let files: [File]
    /// The number of directories in the page of a directory. Their files are not listed.
    package let directoryCount: Int

    /// Reads a document.
    ///
    /// - Parameter source: The URL of the document; `nil` if it is unknown. Relative URLs are resolved against it, and
    ///   files of its origin inherit its user name and password.
    package init(_ bytes: [UInt8], from source: SourceURL?) throws(ListProblem) {
        guard bytes.count <= Self.lengthMax else {
            throw ListProblem(.element(""), "it has \(bytes.count) bytes; \(Self.lengthMax) are allowed")
        }
        var page = DirectoryPage()
        let drafts: [Draft]
        if JSONList.isJSON(bytes) {
            drafts = try JSONListing.drafts(in: bytes, from: source)
        } else if Metalink.isXML(bytes) {
            page = try DirectoryPage(bytes, at: source)
            drafts = page.drafts
        } else {
            let text = String(decoding: bytes, as: UTF8.self)
            if let list = try ExplicitList(text) {
                drafts = list.drafts
            } else {
                drafts = try Self.checksums(in: text)
            }
        }
        var files: [File] = []
        var known: [String: Int] = [:]
        for draft in drafts {
            let file = try File(draft, from: source)
            guard let index = known[file.path] else {
                guard files.count < Self.filesMax else {
                    throw ListProblem(draft.place, "it has more than \(Self.filesMax) files")
                }
                known[file.path] = files.count
                files.append(file)
                continue
            }
            files[index] = try files[index].merged(with: file)
        }
        self.files = files
        self.directoryCount = page.directoryCount
    }

    /// The files of lines such as `DIGEST  NAME`. A line that may name another file is an error: no file is left out silently.
    private static func checksums(in text: String) throws(ListProblem) -> [Draft] {
        let list = ChecksumList(text)
        let entries = list.files
        guard !entries.isEmpty else {
            throw ListProblem(
                .element(""),
                "it is neither the page of a directory, a known answer in JSON, nor a list of checksums and names")
        }
        if let line = list.lostLine {
            throw ListProblem(
                .line(line.number), "this is not a checksum and a name: \"\(SourceURL.withoutSecrets(line.text))\"")
        }
        if let digest = list.entries.first(where: { $0.path?.isEmpty ?? true })?.digest {
            throw ListProblem(.element(""), "the digest \(digest.hex) has no name")
        }
        return entries.map { name, digest in
            let url = name.split(separator: "/").map { PercentEncoding.encode(String($0)) }.joined(separator: "/")
            // A colon in the first component would end a scheme.
            return Draft(place: .element(name), path: name, url: "./" + url, digests: [digest])
        }
    }
}

extension FileListing {
    /// A file as a document states it.
    struct Draft: Hashable {
        var place: ListPlace
        /// `nil` if the URL's last component is the name.
        var path: String?
        /// Possibly relative.
        var url: String
        var digests: [ExpectedDigest] = []
        var length: Int64?
    }
}

extension FileListing.File {
    fileprivate init(_ draft: FileListing.Draft, from base: SourceURL?) throws(ListProblem) {
        var source = try Self.source(draft.url, at: draft.place, from: base)
        if let base, let credentials = base.credentials, source.origin == base.origin, source.credentials == nil {
            source = source.with(credentials)
        }
        guard draft.length ?? 0 >= 0 else { throw ListProblem(draft.place, "its length is negative") }
        guard let path = draft.path ?? SafeFilename.fromURLPath(source.path)?.value else {
            throw ListProblem(draft.place, "its URL has no file name")
        }
        do throws(ListedPath.Refusal) {
            self.path = try ListedPath(path).text
        } catch {
            throw ListProblem(draft.place, "its name \"\(path.printable)\" \(error.reason)", code: .policy)
        }
        self.place = draft.place
        self.source = source
        self.digests = draft.digests
        self.length = draft.length
    }

    private static func source(
        _ url: String, at place: ListPlace, from base: SourceURL?
    ) throws(ListProblem) -> SourceURL {
        guard let base else {
            do throws(DownloadError) {
                return try SourceURL(url)
            } catch {
                throw ListProblem(
                    place,
                    SourceURL.scheme(of: url) == nil ? "its URL is relative; give a base for it" : error.message,
                    code: error.code)
            }
        }
        let resolved = URL(string: base.string).flatMap { URL(string: url, relativeTo: $0)?.absoluteString }
        return try SourceURL(resolved ?? url, at: place, relativeTo: nil)
    }

    /// The file of two entries with one path: a package index and a list of several algorithms have such.
    fileprivate func merged(with other: Self) throws(ListProblem) -> Self {
        guard self.source == other.source else {
            throw ListProblem(other.place, "another file has the path \(self.path) too, with another URL")
        }
        let digests = Set(self.digests + other.digests)
        guard digests.count == Set(digests.map(\.algorithm)).count else {
            throw ListProblem(other.place, "two digests of \(self.path) differ")
        }
        guard self.length == nil || other.length == nil || self.length == other.length else {
            throw ListProblem(other.place, "two lengths of \(self.path) differ")
        }
        var file = self
        file.digests = digests.strongestFirst
        file.length = self.length ?? other.length
        return file
    }
}
