/// The downloads of a group, each at an index that it keeps.
struct DownloadTable: Hashable, Sendable {
    private var entries: [GroupStateMachine.Entry] = []
    private var indices = DownloadIndices()
    /// The entries of downloads that are neither queued nor at rest, in order.
    private(set) var active: [Int] = []
    /// The number of entries at rest, including vacant ones.
    private var resting = 0
    /// The entries of removed downloads. New downloads reuse them, so memory grows with the number of downloads held,
    /// not with the number ever added.
    private var vacant: [Int] = []

    subscript(index: Int) -> GroupStateMachine.Entry {
        _read { yield self.entries[index] }
        _modify { yield &self.entries[index] }
    }

    /// The number of entries, including vacant ones.
    var count: Int { self.entries.count }

    /// Whether every download is at rest.
    var isResting: Bool { self.resting == self.entries.count }

    func index(_ id: DownloadID) -> Int? { self.indices[id] }

    /// Adds a download, queued or at rest. Returns its index.
    mutating func add(_ entry: GroupStateMachine.Entry) -> Int {
        let index = self.vacant.popLast() ?? self.entries.count
        self.indices[entry.id] = index
        if index < self.entries.count {
            self.entries[index] = entry
            self.resting -= 1
        } else {
            self.entries.append(entry)
        }
        if !entry.machine.isQueued { self.resting += 1 }
        return index
    }

    /// Removes a download at rest. Its entry stays for reuse.
    mutating func remove(_ id: DownloadID) {
        guard let index = self.index(id), self.entries[index].machine.conclusion != nil else { return }
        self.indices[id] = nil
        self.vacant.append(index)
    }

    /// Records that a download is in another phase.
    mutating func move(_ index: Int, from before: GroupStateMachine.Phase, to after: GroupStateMachine.Phase) {
        if before == .resting { self.resting -= 1 }
        if after == .resting { self.resting += 1 }
        let place = self.active.partitioningIndex { $0 >= index }
        let isActive = place < self.active.count && self.active[place] == index
        switch after {
        case .queued, .resting: if isActive { self.active.remove(at: place) }
        case .starting, .fetching, .ending: if !isActive { self.active.insert(index, at: place) }
        }
    }
}
