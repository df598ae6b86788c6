import SegmentedDownloadCore

/// A project of a Python package index (PEP 691).
struct PythonPackageIndex: Decodable, JSONListing.Answer {
    struct File: Decodable {
        var filename: String
        /// Possibly relative.
        var url: String
        var hashes: [String: String]
        var size: Int64?
    }

    var files: [File]

    func drafts(from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft] {
        var drafts: [FileListing.Draft] = []
        for (number, file) in self.files.enumerated() {
            let place = ListPlace.element(".files[\(number)]")
            drafts.append(
                FileListing.Draft(
                    place: place, path: file.filename, url: file.url,
                    digests: try .supported(file.hashes, at: place), length: file.size))
        }
        return drafts
    }
}

/// The report of `pip install --dry-run --report -`.
struct PipReport: Decodable, JSONListing.Answer {
    struct Item: Decodable {
        struct Download: Decodable {
            struct Archive: Decodable {
                var hashes: [String: String]?
            }

            var url: String
            /// Nil for a source in a repository or a directory.
            var archive: Archive?

            private enum CodingKeys: String, CodingKey {
                case url
                case archive = "archive_info"
            }
        }

        var download: Download

        private enum CodingKeys: String, CodingKey {
            case download = "download_info"
        }
    }

    var install: [Item]

    func drafts(from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft] {
        var drafts: [FileListing.Draft] = []
        for (number, item) in self.install.enumerated() {
            let place = ListPlace.element(".install[\(number)].download_info")
            guard let archive = item.download.archive else {
                throw ListProblem(place, "it is not an archive")
            }
            drafts.append(
                FileListing.Draft(
                    place: place, url: item.download.url,
                    digests: try .supported(archive.hashes ?? [:], at: place)))
        }
        return drafts
    }
}

/// The packages of a channel of conda, beside its `repodata.json`.
struct CondaRepodata: Decodable, JSONListing.Answer {
    struct Package: Decodable {
        var size: Int64?
        var md5: String?
        var sha256: String?
    }

    struct Info: Decodable {
        /// Where the packages are, if not beside the list (CEP 15).
        var base: String?

        private enum CodingKeys: String, CodingKey {
            case base = "base_url"
        }
    }

    var info: Info?
    /// By file name; archives of the form `.tar.bz2`.
    var packages: [String: Package]
    /// Archives of the form `.conda`.
    var newer: [String: Package]?

    private enum CodingKeys: String, CodingKey {
        case info, packages
        case newer = "packages.conda"
    }

    func drafts(from source: SourceURL?) throws(ListProblem) -> [FileListing.Draft] {
        let base = self.info?.base.map { $0.hasSuffix("/") ? $0 : $0 + "/" } ?? "./"
        var drafts: [FileListing.Draft] = []
        for (list, packages) in [(".packages", self.packages), (".\"packages.conda\"", self.newer ?? [:])] {
            for (name, package) in packages.sorted(by: { $0.key < $1.key }) {
                let place = ListPlace.element("\(list).\"\(name)\"")
                var digests: [String: String] = [:]
                digests["md5"] = package.md5
                digests["sha256"] = package.sha256
                drafts.append(
                    FileListing.Draft(
                        place: place, path: name, url: base + PercentEncoding.encode(name),
                        digests: try .supported(digests, at: place), length: package.size))
            }
        }
        return drafts
    }
}

extension [ExpectedDigest] {
    /// The digests whose algorithms are supported, by the names of the algorithms.
    fileprivate static func supported(
        _ digests: [String: String], at place: ListPlace
    ) throws(ListProblem) -> [ExpectedDigest] {
        var supported: [ExpectedDigest] = []
        for (name, hex) in digests { supported += try .of(name, hex, at: place) }
        return supported.strongestFirst
    }
}
