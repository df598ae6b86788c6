import SegmentedDownloadCore

// Paths of the public interface, such as ``DownloadResult/path``, have the type of swift-system.
@_exported public import struct SystemPackage.FilePath

extension FilePath {
    /// The path as the text that storage and messages use.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if the path is not UTF-8: its text would name another file.
    var text: String {
        get throws(DownloadError) {
            guard let text = String(validating: self) else {
                throw DownloadError(.usage, "the path \(self.string.printable) is not valid UTF-8")
            }
            return text
        }
    }
}
