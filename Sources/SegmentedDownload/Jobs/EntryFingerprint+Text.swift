package import SegmentedDownloadCore

extension EntryFingerprint {
    /// The fingerprint of an entry: SHA-256 over its URLs, separated by tabs, and a line `key=value` for each of its options.
    /// Relative URLs are resolved before (``ListBase/place(of:)``).
    ///
    /// It is the same on every machine and in every version, because it decides which task fetches the entry.
    package init(urls: [String], options: some Sequence<(key: String, value: String)>) {
        var digest = RunningDigest(.sha256)
        var text = urls.count == 1 ? urls[0] : urls.joined(separator: "\t")
        for option in options { text += "\n\(option.key)=\(option.value)" }
        text.withUTF8 { digest.update(UnsafeRawBufferPointer($0)) }
        self = digest.bytes.withUnsafeBytes { EntryFingerprint($0) }
    }
}
