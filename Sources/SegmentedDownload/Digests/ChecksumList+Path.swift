import SegmentedDownloadCore
public import SystemPackage

extension ChecksumList {
    /// The strongest digest for a file; `nil` if the list has none. A list that consists of one digest without a name
    /// matches every file.
    ///
    /// - Parameter path: The file's name, with as much of its path as is known. If several entries have that name, the
    ///   entry whose path has the longest common suffix is used.
    /// - Throws: ``DownloadError`` with code `usage` if several entries match equally well and differ.
    public func digest(of path: FilePath) throws(DownloadError) -> ExpectedDigest? {
        let parts = path.string.split(separator: "/")
        guard let name = parts.last else { return nil }
        let agreement = { (entry: Entry) in
            zip((entry.path ?? []).reversed(), parts.reversed()).prefix { $0 == $1 }.count
        }
        let own = self.entries.filter { agreement($0) > 0 }
        guard let most = own.map(agreement).max() else {
            guard self.entries.count == 1, self.entries[0].path == nil else { return nil }
            return self.entries[0].digest
        }
        let best = own.filter { agreement($0) == most }.map(\.digest)
        let strength = best.map(\.algorithm.length).max() ?? 0
        let strongest = Set(best.filter { $0.algorithm.length == strength })
        guard strongest.count == 1 else {
            throw DownloadError(
                .usage, "the list has several digests of files called \(String(name).printable)",
                remedy: .chooseDigest)
        }
        return strongest.first
    }
}
