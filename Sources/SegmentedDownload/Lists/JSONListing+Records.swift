import SegmentedDownloadCore

/// A record of Zenodo, or of another server with InvenioRDM, and the list of its files.
struct ZenodoRecord: Decodable, JSONListing.Answer {
    struct File: Decodable {
        struct Links: Decodable {
            var content: String?
            var download: String?
            var `self`: String?
        }

        var key: String
        var size: Int64?
        /// Such as `md5:…`.
        var checksum: String?
        var links: Links
    }

    var files: [File]?
    var entries: [File]?

    private enum CodingKeys: String, CodingKey {
        case files, entries
    }

    init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.entries = try members.decodeIfPresent([File].self, forKey: .entries)
        self.files = self.entries == nil ? try members.decode([File].self, forKey: .files) : nil
    }

    func drafts(from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft] {
        let list = self.entries == nil ? ".files" : ".entries"
        var drafts: [FileListing.Draft] = []
        for (number, file) in (self.entries ?? self.files ?? []).enumerated() {
            let place = ListPlace.element("\(list)[\(number)]")
            // `self` of an entry of InvenioRDM is the description of the file.
            guard let url = file.links.content ?? file.links.download ?? file.links.`self` else {
                throw ListProblem(place, "it has no link")
            }
            drafts.append(
                FileListing.Draft(
                    place: place, path: file.key, url: url, digests: try .tagged(file.checksum, at: place),
                    length: file.size))
        }
        return drafts
    }
}

/// A file of an article of figshare.
struct FigshareFile: Decodable {
    var name: String
    var size: Int64?
    var url: String
    var computedMD5: String?
    var suppliedMD5: String?
    /// Whether the file is a page elsewhere. figshare does not have its bytes.
    var isLinkOnly: Bool?

    private enum CodingKeys: String, CodingKey {
        case name, size
        case url = "download_url"
        case computedMD5 = "computed_md5"
        case suppliedMD5 = "supplied_md5"
        case isLinkOnly = "is_link_only"
    }
}

extension FigshareFile: JSONListing.Element {
    static func drafts(of files: [Self], from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft] {
        var drafts: [FileListing.Draft] = []
        for (number, file) in files.enumerated() where file.isLinkOnly != true {
            let place = ListPlace.element("[\(number)]")
            let digests = [file.computedMD5, file.suppliedMD5].compactMap { $0 }.filter { !$0.isEmpty }
            drafts.append(
                FileListing.Draft(
                    place: place, path: file.name, url: file.url,
                    digests: try .of("md5", digests.first, at: place), length: file.size))
        }
        return drafts
    }
}

/// An article of figshare.
struct FigshareArticle: Decodable, JSONListing.Answer {
    var files: [FigshareFile]

    func drafts(from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft] {
        try self.files.drafts(from: source)
    }
}
