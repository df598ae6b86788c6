/// How often the remote file changed or moved during a download.
struct DownloadChanges: Hashable, Sendable {
    /// How often a run restarts when the resource changes. After that, the change is reported.
    static let restartsMax = 3

    /// How often a URL may lead to another resource without new bytes in between. After that, a change is reported.
    static let relocationsMax = 8

    private var restarts = 0
    private var relocations = 0
    /// The most bytes that were on disk when the URL led to another resource.
    private var bytesAtRelocation: Int64 = 0
    /// Whether the URL has led to another resource than before.
    private(set) var hasRelocated = false

    /// Counts a change. Returns whether the file may be begun again.
    mutating func noteChange() -> Bool {
        self.restarts += 1
        self.bytesAtRelocation = 0
        return self.restarts <= Self.restartsMax
    }

    /// Counts that the URL leads to another resource. Returns whether the bytes may be compared with it.
    mutating func noteRelocation(bytesDone: Int64) -> Bool {
        if bytesDone > self.bytesAtRelocation { self.relocations = 0 }
        self.bytesAtRelocation = max(self.bytesAtRelocation, bytesDone)
        self.relocations += 1
        self.hasRelocated = true
        return self.relocations <= Self.relocationsMax
    }
}
