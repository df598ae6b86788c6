import SegmentedDownloadCore

/// An entry of Hugging Face's `/api/models/ORG/NAME/tree/REVISION`.
struct RepositoryFile: Decodable {
    struct LargeFile: Decodable {
        /// The SHA-256 of the file.
        var oid: String
    }

    var type: String
    var path: String
    var size: Int64?
    /// Of files that Git LFS stores. `oid` of the others is the SHA-1 of Git's object, which is not that of the file.
    var lfs: LargeFile?
}

extension RepositoryFile: JSONListing.Element {
    static func drafts(of files: [Self], from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft] {
        guard let source, let tree = RepositoryTree(source) else {
            throw ListProblem(
                .element(""),
                "it lists a repository's files, but its URL is not .../api/models/ORG/NAME/tree/REVISION; give it as the base"
            )
        }
        var drafts: [FileListing.Draft] = []
        for (number, file) in files.enumerated() where file.type == "file" {
            let place = ListPlace.element("[\(number)]")
            drafts.append(
                FileListing.Draft(
                    place: place, path: file.path, url: tree.url(of: file.path),
                    digests: try .of("sha256", file.lfs?.oid, at: place), length: file.size))
        }
        return drafts
    }
}

/// The place of a repository's files on the server that lists them.
struct RepositoryTree {
    private let prefix: String

    /// - Parameter source: The URL of the list; nil if it has another form.
    init?(_ source: SourceURL) {
        let parts = source.path.split(separator: "/")
        guard parts.count > 4, parts[0] == "api", ["models", "datasets", "spaces"].contains(parts[1]),
            let tree = parts[2...].firstIndex(of: "tree"), (3...4).contains(tree), tree + 1 < parts.count
        else { return nil }
        let kind = parts[1] == "models" ? [] : [parts[1]]
        self.prefix = "/" + (kind + parts[2..<tree] + ["resolve", parts[tree + 1]]).joined(separator: "/")
    }

    func url(of path: String) -> String {
        // By bytes: a slash with a combining accent is another `Character`.
        let parts = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return self.prefix + "/" + parts.map { PercentEncoding.encode(String(Substring($0))) }.joined(separator: "/")
    }
}

/// A release in GitHub's API.
struct GitHubRelease: Decodable {
    struct Asset: Decodable {
        var name: String
        var size: Int64?
        var digest: String?
        var url: String

        private enum CodingKeys: String, CodingKey {
            case name, size, digest
            case url = "browser_download_url"
        }
    }

    var tag: String
    var assets: [Asset]

    private enum CodingKeys: String, CodingKey {
        case assets
        case tag = "tag_name"
    }

    fileprivate func drafts(in directory: String, at place: String) throws(ListProblem) -> [FileListing.Draft] {
        var drafts: [FileListing.Draft] = []
        for (number, asset) in self.assets.enumerated() {
            let place = ListPlace.element("\(place).assets[\(number)]")
            drafts.append(
                FileListing.Draft(
                    place: place, path: directory + asset.name, url: asset.url,
                    digests: try .tagged(asset.digest, at: place), length: asset.size))
        }
        return drafts
    }
}

extension GitHubRelease: JSONListing.Answer {
    func drafts(from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft] {
        try self.drafts(in: "", at: "")
    }
}

/// Several releases: the assets of each are in a directory with the name of its tag.
extension GitHubRelease: JSONListing.Element {
    static func drafts(of releases: [Self], from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft] {
        var drafts: [FileListing.Draft] = []
        for (number, release) in releases.enumerated() {
            drafts += try release.drafts(in: release.tag + "/", at: "[\(number)]")
        }
        return drafts
    }
}
