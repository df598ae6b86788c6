import SegmentedDownload
import SegmentedDownloadCore

/// Every statement that users and servers made about files: each must be true of a file that is reported as complete, and none
/// may be missing where the file's bytes are stored.
final class StatementLedger {
    /// What the user of a run states about a file.
    struct Demand {
        var digest: ExpectedDigest?
        var pieces: PieceDigests?
        var length: Int64?
    }

    private let disk: SimulatedDisk
    private let network: SimulatedNetwork
    /// Whether a run may lose statements because disk operations fail.
    var isForgetful = false
    private(set) var demands: [Int: Demand] = [:]
    /// The files for which a SHA-256 was given in some run: it overrules what servers state.
    private var pinned: Set<Int> = []
    /// The digests that servers stated about the file whose bytes are on disk, with the run and the time.
    private var stated: [Int: [(digest: ExpectedDigest, run: Int, time: Duration)]] = [:]
    /// What users of earlier runs stated about the bytes on disk.
    private var inherited: [Int: Demand] = [:]
    /// The bytes that were claimed before the run.
    private var claimedBefore: [Int: Int64] = [:]
    private var run = 0
    /// The files that another program has changed after they were complete.
    private(set) var edited: [SimulatedDisk.Inode] = []
    /// The files of which a part was changed.
    private(set) var partsEdited: Set<Int> = []

    init(disk: SimulatedDisk, network: SimulatedNetwork) {
        self.disk = disk
        self.network = network
        network.onStatement = { [unowned self] file, digests in self.note(digests, of: file) }
    }

    // MARK: What is stated

    func begin(_ demands: [Int: Demand]) {
        self.run += 1
        self.demands = demands
        for (file, demand) in demands where demand.digest != nil { self.pinned.insert(file) }
        for file in self.network.origins.indices { self.claimedBefore[file] = self.manifest(of: file)?.claimed ?? 0 }
    }

    private func note(_ digests: [ExpectedDigest], of file: Int) {
        self.stated[file, default: []] += digests.map { ($0, self.run, self.network.clock.now) }
    }

    /// Notes that a download starts over: what was stated before is about another version.
    func restart(_ file: Int) {
        self.stated[file] = []
        self.inherited[file] = nil
    }

    /// Notes that a download begins now without a byte from before.
    func beginAnew(_ file: Int) {
        self.stated[file]?.removeAll { $0.time < self.network.clock.now }
        self.inherited[file] = nil
    }

    // MARK: What must hold

    /// Checks a file that is reported as complete.
    func complete(_ file: Int) -> [String] {
        guard let inode = self.disk.names["file\(file)"] else { return [] }
        var violations: [String] = []
        if self.edited.contains(where: { $0 === inode }) {
            violations.append("file \(file) was edited and is reported as complete")
        }
        var demand = self.demands[file] ?? Demand()
        if let inherited = self.inherited[file] {
            demand.digest = demand.digest ?? inherited.digest
            demand.pieces = demand.pieces ?? inherited.pieces
        }
        if let length = demand.length, length != inode.bytes.count {
            violations.append("file \(file) is complete with \(inode.bytes.count) bytes, and \(length) were required")
        }
        let digest = SimulatedNetwork.digest(of: inode.bytes)
        if let required = demand.digest, required != digest {
            violations.append("file \(file) is complete without the required \(required)")
        }
        if self.pinned.contains(file) { return violations }
        if let pieces = demand.pieces {
            for (number, hex) in pieces.hexes.enumerated() {
                let piece = inode.bytes.dropFirst(number * Int(pieces.length)).prefix(Int(pieces.length))
                if SimulatedNetwork.digest(of: Array(piece)).hex != hex {
                    violations.append("file \(file) is complete without the required piece \(number)")
                }
            }
        }
        let stated = Set((self.stated[file] ?? []).map(\.digest))
        // Digests of the whole file say nothing about the bytes of a part, but one version has one digest.
        guard self.network.parts[file] == nil else {
            if !self.isForgetful, stated.count > 1 {
                violations.append("a part of file \(file) is complete, and servers stated \(stated) about the whole")
            }
            return violations
        }
        if !self.isForgetful, let wrong = self.stated[file]?.first(where: { $0.digest != digest }) {
            violations.append(
                "file \(file) is complete without the \(wrong.digest) that a server stated in run \(wrong.run)")
        }
        return violations
    }

    /// Ends a run, and checks that the manifests have every statement.
    ///
    /// - Parameter endings: Nil after a crash.
    func end(_ endings: [String]?) -> [String] {
        var violations: [String] = []
        for file in self.network.origins.indices {
            guard let endings, endings.indices.contains(file) else {
                self.restart(file)
                continue
            }
            switch endings[file] {
            case "completed", "already", "exists", "changed", "integrity": self.restart(file)
            default: violations += self.check(file)
            }
        }
        return violations
    }

    private func check(_ file: Int) -> [String] {
        guard !self.isForgetful, self.disk.failures == 0, let (manifest, claimed) = self.manifest(of: file), claimed > 0
        else { return [] }
        var violations: [String] = []
        let lacking = (self.stated[file] ?? []).filter { !manifest.header.resource.digests.contains($0.digest) }
        if let first = lacking.first {
            violations.append(
                "the manifest of file \(file) lacks \(first.digest), which a server stated in run \(first.run)")
        }
        guard claimed > self.claimedBefore[file] ?? 0 else { return violations }
        let demand = self.demands[file] ?? Demand()
        // Another URL's download takes nothing over.
        if !self.network.twins.contains(file) {
            let before = self.inherited[file]
            self.inherited[file] = Demand(
                digest: demand.digest ?? before?.digest, pieces: demand.pieces ?? before?.pieces)
        }
        if let digest = demand.digest, !manifest.header.digests.contains(digest.description) {
            violations.append("the manifest of file \(file) lacks the digest that was required")
        }
        if let pieces = demand.pieces, manifest.header.pieces != pieces {
            violations.append("the manifest of file \(file) lacks the digests of pieces that were required")
        }
        if manifest.header.selection == nil { violations.append("the manifest of file \(file) lacks the selection") }
        if manifest.header.label.part != self.network.parts[file] {
            violations.append("the manifest of file \(file) has another part")
        }
        return violations
    }

    private func manifest(of file: Int) -> (Manifest, claimed: Int64)? {
        guard let inode = self.disk.names["file\(file).segdl"], let manifest = try? ManifestCodec.decode(inode.bytes)
        else {
            return nil
        }
        return (manifest, (manifest.durable + manifest.pending).settled().reduce(0) { $0 + $1.length })
    }

    // MARK: What other programs do

    /// Has another program change a byte of a file at rest, or of its part.
    ///
    /// - Parameter keepsTime: Whether it restores the modification time.
    func edit(_ file: Int, keepsTime: Bool, using generator: inout SplitMix64) {
        let names = ["file\(file)", "file\(file).segdl-part"].filter { self.disk.names[$0]?.bytes.isEmpty == false }
        guard let name = names.randomElement(using: &generator), let inode = self.disk.names[name] else { return }
        let offset = Int.random(in: inode.bytes.indices, using: &generator)
        inode.bytes[offset] &+= 1
        inode.durable = inode.bytes
        if !keepsTime { inode.modified = self.disk.stamp() }
        // Within the unit of the file system's clock, a change by a program that restores the time is not seen.
        inode.changed = self.disk.stamp() + (keepsTime ? 5_000_000_000 : 0)
        if name.hasSuffix("-part") { self.partsEdited.insert(file) } else { self.edited.append(inode) }
    }
}
