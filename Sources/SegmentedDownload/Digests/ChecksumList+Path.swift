import SegmentedDownloadCore
public import SystemPackage

extension ChecksumList {
    /// The strongest of the ``digests(of:)`` a file; `nil` if the list has none.
    ///
    /// - Throws: As ``digests(of:)``.
    public func digest(of path: FilePath) throws(DownloadError) -> ExpectedDigest? { try self.digests(of: path).first }

    /// The digests of a file, all of which it must have: at most one of each algorithm, the strongest first. A list that
    /// consists of one digest without a name matches every file.
    ///
    /// - Parameter path: The file's name, with as much of its path as is known. If several entries have that name, the
    ///   entries whose path has the longest common suffix are used.
    /// - Throws: ``DownloadError`` with code `usage` if several entries match equally well and differ.
    public func digests(of path: FilePath) throws(DownloadError) -> [ExpectedDigest] {
        let parts = path.string.split(separator: "/")
        guard let name = parts.last else { return [] }
        let agreement = { (entry: Entry) in
            zip((entry.path ?? []).reversed(), parts.reversed()).prefix { $0 == $1 }.count
        }
        let own = self.entries.filter { agreement($0) > 0 }
        guard let most = own.map(agreement).max() else {
            guard self.entries.count == 1, self.entries[0].path == nil else { return [] }
            return [self.entries[0].digest]
        }
        let best = own.filter { agreement($0) == most }
        // Entries of files in other directories count only if there is no better one.
        let whole = best.filter { $0.path?.count == most }
        let files = Dictionary(grouping: whole.isEmpty ? best : whole) { $0.path }.values
            .reduce(into: Set<Set<ExpectedDigest>>()) { $0.insert(Set($1.map(\.digest))) }
        guard files.count == 1, let digests = files.first, digests.count == Set(digests.map(\.algorithm)).count else {
            throw DownloadError(
                .usage, "the list has several digests of files called \(String(name).printable)",
                remedy: .chooseDigest)
        }
        return digests.strongestFirst
    }
}
