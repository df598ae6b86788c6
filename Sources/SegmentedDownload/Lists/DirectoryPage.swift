import SegmentedDownloadCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The links of an HTML page that are files: the page of a directory, as nginx, Apache, lighttpd and Python write it, or
/// of a Python package index (PEP 503).
///
/// A link is a file if it is directly in the page's directory, on the same server. Links to the directory above, to
/// other places and to other orders of the page are ignored. A link of a package index may lead anywhere: it has a digest
/// as its fragment, or the page has the index's `meta` element.
struct DirectoryPage {
    private(set) var drafts: [FileListing.Draft] = []
    /// Links to directories below this one.
    private(set) var directoryCount = 0

    /// A page without links.
    init() {}

    init(_ bytes: [UInt8], at source: SourceURL?) throws(ListProblem) {
        let links = HTMLLinks(bytes)
        guard !links.isMetalink else {
            throw ListProblem(.element(""), "it is a metalink, which is an input file")
        }
        guard let source, let page = URL(string: source.string) else {
            throw ListProblem(.element(""), "it is a page in HTML, and its URL is unknown; give it as a base")
        }
        guard links.anchors.count <= FileListing.filesMax else {
            throw ListProblem(.element(""), "it has more than \(FileListing.filesMax) links")
        }
        let base = links.base.flatMap { URL(string: $0, relativeTo: page)?.absoluteURL } ?? page
        let directory = String(source.path[...(source.path.lastIndex(of: "/") ?? source.path.startIndex)])
        var directories: Set<String> = []
        for anchor in links.anchors {
            guard let target = URL(string: anchor.target, relativeTo: base)?.absoluteURL,
                let file = try? SourceURL(target.absoluteString)
            else { continue }
            let digest = target.fragment.flatMap { ExpectedDigest($0) }
            if digest == nil, !(links.isPackageIndex && !file.path.hasSuffix("/")) {
                guard file.origin == source.origin, file.path.hasPrefix(directory) else { continue }
                let rest = file.path.dropFirst(directory.count)
                if rest.hasSuffix("/") { directories.insert(file.path) }
                guard !rest.isEmpty, !rest.contains("/") else { continue }
            }
            guard let name = SafeFilename.fromURLPath(file.path) else { continue }
            self.drafts.append(
                FileListing.Draft(
                    place: .line(anchor.line), path: name.value, url: file.string, digests: digest.map { [$0] } ?? []))
        }
        self.directoryCount = directories.count
    }
}
