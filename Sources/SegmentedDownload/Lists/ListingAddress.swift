import SegmentedDownloadCore

/// The addresses of APIs that list the files of a page for readers.
///
/// The page of a repository, a release, a record or an article has no links that a program could follow. Scheme and port
/// stay as they are.
package enum ListingAddress {
    /// The URL of the list that belongs to a page; the same URL if the host is not known.
    package static func list(of source: SourceURL) throws(DownloadError) -> SourceURL {
        let parts = source.path.split(separator: "/").map(String.init)
        guard let (host, path) = Self.place(source.origin.host, parts) else { return source }
        let port = source.origin.port == (source.origin.scheme == "https" ? 443 : 80) ? "" : ":\(source.origin.port)"
        return try SourceURL("\(source.origin.scheme)://\(host ?? source.origin.host)\(port)\(path)")
    }

    /// The host, nil for the same one, and the path of the list.
    private static func place(_ host: String, _ parts: [String]) -> (host: String?, path: String)? {
        switch host {
        case "huggingface.co", "hf.co": Self.huggingFace(parts).map { ("huggingface.co", $0) }
        case "github.com": Self.gitHub(parts).map { ("api.github.com", $0) }
        case "zenodo.org", "sandbox.zenodo.org": Self.zenodo(parts).map { (nil, $0) }
        case "figshare.com": Self.figshare(parts).map { ("api.figshare.com", $0) }
        case "pypi.org": parts.count == 2 && parts[0] == "project" ? (nil, "/simple/\(parts[1])/") : nil
        case "doi.org", "dx.doi.org": Self.identifier(parts)
        default: host.hasSuffix(".figshare.com") ? Self.figshare(parts).map { ("api.figshare.com", $0) } : nil
        }
    }

    /// `/[datasets/|spaces/]ORG/NAME[/tree/REVISION[/DIR]]`
    private static func huggingFace(_ parts: [String]) -> String? {
        var rest = parts[...]
        var kind = "models"
        if let first = rest.first, first == "datasets" || first == "spaces" {
            kind = first
            rest.removeFirst()
        }
        guard rest.count >= 2, !["api", "docs", "blog", "papers"].contains(rest[rest.startIndex]) else { return nil }
        let name = rest.prefix(2)
        rest = rest.dropFirst(2)
        if rest.isEmpty { rest = ["tree", "main"] }
        guard rest.first == "tree", rest.count >= 2 else { return nil }
        return "/api/\(kind)/" + (name + rest).joined(separator: "/") + "?recursive=true"
    }

    /// `/OWNER/NAME[/releases[/latest|/tag/TAG]]`
    private static func gitHub(_ parts: [String]) -> String? {
        guard parts.count >= 2 else { return nil }
        let releases = "/repos/\(parts[0])/\(parts[1])/releases"
        switch Array(parts.dropFirst(2)) {
        case [], ["releases"], ["releases", "latest"]: return releases + "/latest"
        case let rest where rest.starts(with: ["releases", "tag"]) && rest.count > 2:
            return releases + "/tags/" + rest.dropFirst(2).joined(separator: "/")
        default: return nil
        }
    }

    /// `/records/ID`, and the older `/record/ID`
    private static func zenodo(_ parts: [String]) -> String? {
        guard parts.count >= 2, ["records", "record"].contains(parts[0]), parts[1].isNumber else { return nil }
        return "/api/records/\(parts[1])"
    }

    /// `/articles/KIND/TITLE/ID[/VERSION]`, and the older `/articles/TITLE/ID[/VERSION]`
    private static func figshare(_ parts: [String]) -> String? {
        guard (3...5).contains(parts.count), parts[0] == "articles" else { return nil }
        let last = parts.count - 1
        // A title can be a number. With four components, the third is an ID if the last is as short as a version is.
        let hasVersion =
            parts.count == 5 || parts.count == 4 && parts[2].isNumber && parts[3].utf8.count <= Self.versionDigitsMax
        let id = parts[hasVersion ? last - 1 : last]
        guard id.isNumber, parts[last].isNumber else { return nil }
        return "/v2/articles/\(id)" + (hasVersion ? "/versions/\(parts[last])" : "")
    }

    /// 3: the IDs of articles have more digits, apart from those of figshare's first months.
    private static let versionDigitsMax = 3

    /// `/10.5281/zenodo.ID` and `/10.6084/m9.figshare.ID[.vVERSION]`
    private static func identifier(_ parts: [String]) -> (host: String?, path: String)? {
        guard parts.count == 2 else { return nil }
        let words = parts[1].lowercased().split(separator: ".").map(String.init)
        if words.count == 2, words[0] == "zenodo", words[1].isNumber {
            return ("zenodo.org", "/api/records/\(words[1])")
        }
        guard (3...4).contains(words.count), words[1] == "figshare", words[2].isNumber else { return nil }
        guard words.count == 4 else { return ("api.figshare.com", "/v2/articles/\(words[2])") }
        let version = String(words[3].dropFirst())
        guard words[3].hasPrefix("v"), version.isNumber else { return nil }
        return ("api.figshare.com", "/v2/articles/\(words[2])/versions/\(version)")
    }
}

extension String {
    fileprivate var isNumber: Bool { DecimalDigits(self.utf8) != nil }
}
