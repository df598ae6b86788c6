/// A disk at one moment: its durable state, and the pending operations that may or may not survive a power cut.
struct DiskImage {
    struct File {
        let number: UInt64
        var bytes: [UInt8]
        var attributes: [String: [UInt8]]
        let pending: [SimulatedDisk.Operation]
        /// The modification time in nanoseconds since 1970.
        var modified: Int64 = 0
        /// The time of the last change in nanoseconds since 1970.
        var changed: Int64 = 0
    }

    enum NameOperation {
        case link(String, UInt64)
        case unlink(String)
        case rename(String, String)
    }

    /// The state after the power cut: names and their files.
    struct Settled {
        var files: [(String, File)]
        /// Besides those of the files.
        var directories: [String] = []
        var boot: Int
    }

    /// What happens to one pending operation.
    enum Fate: Hashable {
        case whole, lost
        /// Only the first `Int` bytes of a write arrive.
        case torn(Int)
        /// The file grows, and its data does not arrive.
        case lengthOnly
    }

    let files: [File]
    let names: [(String, UInt64)]
    let pendingNames: [NameOperation]
    let directories: [String]
    let boot: Int

    private var pendingCount: Int { self.files.reduce(0) { $0 + $1.pending.count } }

    /// Pairs and triples of lost operations are tried up to this number of pending operations; beyond, there are too
    /// many.
    private static let pairsMax = 24
    private static let triplesMax = 10

    /// The fates tried for the pending operations: all survive, none, any one to three are lost, any one is torn or
    /// lacks its data.
    var fates: [[Fate]] {
        let count = self.pendingCount
        let whole = [Fate](repeating: .whole, count: count)
        var fates = [whole, [Fate](repeating: .lost, count: count)]
        // A prefix survives, as on a disk that keeps the order of writes.
        for kept in 0..<count { fates.append((0..<count).map { $0 < kept ? .whole : .lost }) }
        let operations = self.files.flatMap(\.pending)
        for first in 0..<count {
            fates.append(whole.replacing(first, .lost))
            if case .write(_, let bytes) = operations[first] {
                for sector in [512, 4096] where bytes.count > sector {
                    let last = (bytes.count - 1) / sector * sector
                    fates.append(whole.replacing(first, .torn(sector)))
                    if last > sector { fates.append(whole.replacing(first, .torn(last))) }
                }
                fates.append(whole.replacing(first, .torn(1)))
                fates.append(whole.replacing(first, .lengthOnly))
            }
            guard count <= Self.pairsMax else { continue }
            for second in (first + 1)..<max(count, first + 1) {
                fates.append(whole.replacing(first, .lost).replacing(second, .lost))
                guard count <= Self.triplesMax else { continue }
                for third in (second + 1)..<max(count, second + 1) {
                    fates.append(whole.replacing(first, .lost).replacing(second, .lost).replacing(third, .lost))
                }
            }
        }
        return fates
    }

    /// Calls `body` with every state that a power cut may leave: each fate of the data with each prefix of the
    /// directory operations.
    func states(_ body: (Settled) -> Bool) {
        for fate in self.fates {
            let files = self.settledFiles(fate)
            for kept in 0...self.pendingNames.count {
                guard body(self.settled(files, names: kept)) else { return }
            }
        }
    }

    /// One of the states that ``states(_:)`` visits.
    ///
    /// - Parameters:
    ///   - fates: One of ``fates``.
    ///   - kept: How many of the directory operations survive.
    func state(_ fates: [Fate], names kept: Int) -> Settled {
        self.settled(self.settledFiles(fates), names: kept)
    }

    /// The state in which everything is lost that may be.
    var least: Settled {
        self.state([Fate](repeating: .lost, count: self.pendingCount), names: 0)
    }

    /// The state in which nothing is lost: the power stayed on.
    var most: Settled {
        self.state([Fate](repeating: .whole, count: self.pendingCount), names: self.pendingNames.count)
    }

    private func settledFiles(_ fates: [Fate]) -> [UInt64: File] {
        var rest = fates[...]
        var settled: [UInt64: File] = [:]
        for var file in self.files {
            for operation in file.pending { Self.apply(operation, rest.removeFirst(), to: &file) }
            settled[file.number] = file
        }
        return settled
    }

    private static func apply(_ operation: SimulatedDisk.Operation, _ fate: Fate, to file: inout File) {
        switch (operation, fate) {
        case (_, .whole): SimulatedDisk.apply(operation, to: &file.bytes, &file.attributes)
        case (.write(let offset, let bytes), .torn(let count)):
            let part = SimulatedDisk.Operation.write(offset: offset, bytes: Array(bytes.prefix(count)))
            SimulatedDisk.apply(part, to: &file.bytes, &file.attributes)
        case (.write(let offset, let bytes), .lengthOnly):
            guard file.bytes.count < offset + bytes.count else { return }
            SimulatedDisk.apply(.resize(offset + bytes.count), to: &file.bytes, &file.attributes)
        case (_, .lost), (_, .torn), (_, .lengthOnly): break
        }
    }

    private func settled(_ files: [UInt64: File], names kept: Int) -> Settled {
        var names: [(String, UInt64)] = self.names
        for operation in self.pendingNames[..<kept] {
            switch operation {
            case .link(let name, let number):
                names.removeAll { $0.0 == name }
                names.append((name, number))
            case .unlink(let name): names.removeAll { $0.0 == name }
            case .rename(let name, let target):
                guard let index = names.firstIndex(where: { $0.0 == name }) else { continue }
                let number = names.remove(at: index).1
                names.removeAll { $0.0 == target }
                names.append((target, number))
            }
        }
        return Settled(
            files: names.compactMap { name, number in files[number].map { (name, $0) } },
            directories: self.directories, boot: self.boot + 1)
    }
}

extension [DiskImage.Fate] {
    fileprivate func replacing(_ index: Int, _ fate: DiskImage.Fate) -> Self {
        var copy = self
        copy[index] = fate
        return copy
    }
}
