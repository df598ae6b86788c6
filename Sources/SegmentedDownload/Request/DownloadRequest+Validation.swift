import HTTPTypes
import SegmentedDownloadCore
import SystemPackage

extension DownloadRequest {
    /// Checks whether the request's fields, credentials, destination, ``id`` and ``userInfo`` are valid, without adding
    /// it to a group.
    ///
    /// Whether the file exists, and whether there is space for it, is found out when the download runs.
    ///
    /// - Throws: ``DownloadError`` with code `usage` if a field's value has a control character, if the downloader sets a
    ///   field itself, if the destination's path is not UTF-8 or ends like that of a part or manifest, if
    ///   ``DownloadOptions/rootDirectory`` is not an absolute path in its shortest form, if ``pieceDigests`` are given, and no
    ///   digests, for a part or a destination that cannot be read again, or if ``id`` and ``userInfo`` together are longer than a manifest can store (64 KiB).
    public func validate() throws(DownloadError) { try self.validate(isStreamed: false) }

    /// - Parameter isStreamed: Whether a consumer gets the bytes instead of the destination.
    func validate(isStreamed: Bool) throws(DownloadError) {
        try self.checkLabel()
        _ = try self.destination.path?.text
        try self.checkName()
        try self.credentials?.validate()
        guard self.options.lengthMaximum >= 0, self.options.lengthExpected ?? 0 >= 0 else {
            throw DownloadError(.usage, "a length must be 0 or more")
        }
        if let part = self.options.part {
            guard part.isValid else { throw DownloadError(.usage, "a part of a file ends after it begins") }
            guard self.options.lengthExpected == nil else {
                throw DownloadError(.usage, "the list states the length of the whole file, so no part can be fetched")
            }
        }
        let isWholeFile = self.destination.directory != nil && !isStreamed && self.options.part == nil
        guard self.pieceDigests == nil || !self.digests.isEmpty || isWholeFile else {
            throw DownloadError(
                .usage, "only digests of pieces are given, which can be verified only for a whole file on disk",
                hint: "Give a digest of the file, or fetch the whole file to a disk")
        }
        if let root = self.options.rootDirectory {
            let path = FilePath(root)
            guard path.isAbsolute, path.lexicallyNormalized().string == root else {
                throw DownloadError(
                    .usage, "rootDirectory must be an absolute path without . and .., and without needless slashes")
            }
        }
        for field in self.fields {
            // A field made with `lenientValue` may have a control character.
            guard field.withUnsafeBytesOfValue({ HTTPField.isValidValue($0) }) else {
                throw DownloadError(
                    .usage, "the value given for \(field.name.rawName) contains a line break or a control character")
            }
            guard !Self.ownFields.contains(field.name.canonicalName) else {
                let isHost = field.name.canonicalName == "host"
                throw DownloadError(
                    .usage, "\(field.name.rawName) is set by the downloader and cannot be given",
                    hint: isHost ? "Write the name in the URL, and map it to the address, as with curl's resolve" : nil)
            }
        }
    }

    /// Fields that follow from the requested range or frame the message.
    private static let ownFields = [
        "range", "if-range", "if-none-match", "host", "content-length", "transfer-encoding", "accept-encoding",
        "connection",
    ]

    /// Throws if the file would have the name of the part or the manifest of another file.
    private func checkName() throws(DownloadError) {
        guard case .file(let path) = self.destination, let name = path.lastComponent?.string.utf8 else { return }
        let suffixes = [DestinationPaths.partSuffix, DestinationPaths.manifestSuffix, DestinationPaths.draftSuffix]
        for suffix in suffixes
        where name.count > suffix.utf8.count && name.suffix(suffix.utf8.count).elementsEqual(suffix.utf8) {
            throw DownloadError(
                .usage, "\(path.string.printable) ends in \(suffix), like segdl's own files",
                hint: "Choose another name")
        }
    }

    private func checkLabel() throws(DownloadError) {
        let length = self.label(inheriting: nil).length
        guard length <= Manifest.Label.lengthMaximum else {
            throw DownloadError(
                .usage,
                "id and userInfo have \(length) bytes, but the manifest can store only \(Manifest.Label.lengthMaximum)")
        }
    }
}
