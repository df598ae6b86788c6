import SegmentedDownload
import SegmentedDownloadCore

/// Every file of an accepted list stays below its directory, and a page names files of its own directory only, unless a
/// package index states their digests.
enum FileListingProperties {
    /// Of a page, and of a repository's files.
    private static let sources = ["http://a.example/pub/dir/page", "http://a.example/api/models/o/n/tree/main"]

    static func check(_ bytes: [UInt8]) throws(Violation) {
        for text in Self.sources {
            guard let source = try? SourceURL(text) else { throw Violation(description: "\(text) is no URL") }
            let listing: FileListing
            do throws(ListProblem) {
                listing = try FileListing(bytes, from: source)
            } catch {
                let failure = error.failure(in: "list")
                try require([.usage, .policy].contains(failure.code), "\(failure) is not about a list")
                try require(
                    failure.message.unicodeScalars.allSatisfy { Reference.isShowable($0) },
                    "\(failure.message.debugDescription)")
                continue
            }
            try Self.check(listing, bytes, from: source)
        }
    }

    private static func check(_ listing: FileListing, _ bytes: [UInt8], from source: SourceURL) throws(Violation) {
        try require(Set(listing.files.map(\.path)).count == listing.files.count, "two files have one path")
        try require(listing.directoryCount >= 0, "there are less than no directories")
        let isPage = Metalink.isXML(bytes)
        let isIndex = String(decoding: bytes, as: UTF8.self).lowercased().contains("pypi:repository-version")
        for file in listing.files {
            for component in Reference.split(file.path.utf8, at: "/").map({ String(decoding: $0, as: UTF8.self) }) {
                try require(
                    SafeFilename(untrusted: component)?.value == component, "\(file.path.debugDescription) is not safe")
            }
            try require(file.length ?? 0 >= 0, "\(file.path) has less than nothing")
            guard isPage, !isIndex, file.digests.isEmpty else { continue }
            try require(
                file.source.origin == source.origin && file.source.path.hasPrefix(source.path.parent),
                "\(file.source.string) is not in the page's directory")
        }
        guard isPage else { return }
        let longer = try? FileListing(Array("<!-- <a href=x> -->".utf8) + bytes, from: source)
        try require(longer?.files.map(\.source) == listing.files.map(\.source), "a comment changes the page")
    }
}

extension StringProtocol {
    /// The path up to its last slash.
    fileprivate var parent: String { String(self[...(self.lastIndex(of: "/") ?? self.startIndex)]) }
}
