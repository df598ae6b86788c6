package import SegmentedDownload

/// Destinations whose path a test puts together as text, as most do below a temporary directory.
extension DownloadRequest.Destination {
    package static func file(_ path: String) -> Self { .file(FilePath(path)) }

    package static func directory(_ path: String, name: NameTemplate? = nil) -> Self {
        .directory(FilePath(path), name: name)
    }
}
