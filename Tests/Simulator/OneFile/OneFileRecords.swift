import SegmentedDownload
import SegmentedDownloadCore

/// What the manifests and records of a shared file claim on a disk, as production reads them.
struct OneFileRecords {
    struct Flaw: Error {
        let text: String

        init(_ text: String) { self.text = text }
    }

    /// Nil if there is no plan.
    let plan: SharedFilePlan?
    /// Whether the file is in place.
    let isComplete: Bool
    /// The bytes that are durable, as offsets in the file, by the name of the record that they have or will have.
    private var durable: [String: [Range<Int64>]] = [:]
    /// The windows that have a record, by its name.
    private var records: [String: Range<Int64>] = [:]

    /// Reads all manifests and records.
    ///
    /// - Parameter includesPending: Whether claims count that are not durable yet. They hold unless power was cut.
    /// - Throws: ``Flaw`` if one claims a byte that is not there.
    init(_ scene: SharedFileScene, on machine: SharedFileScene.Machine, includesPending: Bool = false) throws {
        let names = machine.disk.names
        let file = scene.file(in: machine.disk.storage(), machine)
        let final = names[SharedFileScene.name]
        if let final, final.bytes != scene.version.bytes { throw Flaw("a wrong file has the final name") }
        self.isComplete = final != nil
        do {
            self.plan = try file.plan()
        } catch {
            throw Flaw("the plan cannot be read: \(error)")
        }
        guard let plan, let first = plan.division.shards.first else { return }
        let data = final ?? names[file.window(of: first, plan).data]
        guard let data, data.number == plan.inode, data.bytes.count == scene.version.bytes.count else {
            throw Flaw("the plan's data is missing, or has another length")
        }
        for (path, inode) in names.sorted(by: { $0.key < $1.key }) where path.hasPrefix(file.directory + "/") {
            let name = path.dropFirst(file.directory.count + 1)
            let isManifest = name.hasSuffix(DestinationPaths.manifestSuffix)
            let stem = isManifest ? name.dropLast(DestinationPaths.manifestSuffix.count) : name
            guard let range = Self.range(of: stem, plan.division) else { continue }
            let claims =
                isManifest
                ? Self.claims(of: inode.bytes, range, includesPending: includesPending)
                : Self.record(inode.bytes, range)
            let isThere = { (claim: Range<Int64>) in
                let bytes = Int(claim.lowerBound)..<Int(claim.upperBound)
                return range.contains(claim.lowerBound) && claim.upperBound <= range.upperBound
                    && data.bytes[bytes] == scene.version.bytes[bytes]
            }
            if let wrong = claims.first(where: { !isThere($0) }) {
                throw Flaw("\(name) claims bytes \(wrong), which are not there")
            }
            if !isManifest, let claim = claims.first { self.records[String(stem)] = claim }
            self.durable[String(stem)] = (self.durable[String(stem), default: []] + claims).merged()
        }
        for task in try file.tasks(plan) where task.isComplete && !self.isRecorded(task.shard) {
            throw Flaw("task \(task.shard) counts as complete without a record of its range")
        }
    }

    /// The name of the record that a window has when it is complete.
    static func name(of window: FileWindow) -> String {
        String(DestinationPaths(path: window.part).name.dropLast(DestinationPaths.partSuffix.count))
    }

    /// The window with a record of this name; nil if it is no name of a record.
    private static func range(of name: Substring, _ division: FileDivision) -> Range<Int64>? {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        switch parts.count {
        case 1: return Shard(fileName: name).map { division.range(of: $0) }
        case 3: return RangePiece(parts[0], parts[1]).map { division.range(of: $0) }
        default: return nil
        }
    }

    private static func claims(
        of manifest: [UInt8], _ range: Range<Int64>, includesPending: Bool
    ) -> [Range<Int64>] {
        // One that is damaged claims nothing.
        guard let manifest = try? ManifestCodec.decode(manifest) else { return [] }
        return (manifest.durable + (includesPending ? manifest.pending : [])).settled().map {
            range.lowerBound + $0.offset..<range.lowerBound + $0.range.upperBound
        }
    }

    private static func record(_ record: [UInt8], _ range: Range<Int64>) -> [Range<Int64>] {
        FinishedRecord(decoding: record) == nil ? [] : [range]
    }

    /// The bytes that a task that fetches a window has no reason to fetch again.
    ///
    /// For a piece of another task's range these are those of the piece's record. Claims of that task may be used, if they do
    /// not extend beyond the piece.
    func durable(in window: FileWindow, for shard: Shard) -> [Range<Int64>] {
        let parts = Self.name(of: window).split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count > 1, let piece = RangePiece(parts[0], parts[1]) else { return self.own(shard) }
        return self.isRecorded(piece.shard) || self.isRecorded(piece) ? [window.range] : []
    }

    /// The bytes of a task's range that the task itself has no reason to fetch again.
    private func own(_ shard: Shard) -> [Range<Int64>] {
        guard let division = self.plan?.division else { return [] }
        return self.isRecorded(shard) ? [division.range(of: shard)] : self.durable[shard.fileName] ?? []
    }

    private func isRecorded(_ shard: Shard) -> Bool {
        guard self.records[shard.fileName] == nil else { return true }
        // The records of all pieces are a record of the range.
        let pieces = self.plan?.division.pieces(of: shard) ?? []
        return !pieces.isEmpty && pieces.allSatisfy { self.isRecorded($0) }
    }

    private func isRecorded(_ piece: RangePiece) -> Bool {
        self.records.contains { name, _ in name.hasPrefix("\(piece.fileName).") }
    }

    /// What was durable before a power cut and is missing after it; nil if nothing is.
    ///
    /// - Parameter before: What a cut leaves that loses everything that it may.
    func loss(since before: OneFileRecords, _ moment: OneFilePlot.Moment) -> String? {
        if self.isComplete { return nil }
        if before.isComplete || moment.isAssembled { return "the complete file is lost" }
        if before.plan != nil, self.plan == nil { return "the plan is lost" }
        for (name, ranges) in before.durable.sorted(by: { $0.key < $1.key }) {
            let lost = ranges.subtracting(self.durable[name] ?? [])
            if !lost.isEmpty { return "\(name) had \(lost) as durable, and has not" }
        }
        for (name, length) in moment.durable.sorted(by: { $0.key < $1.key }) {
            let left = self.durable[name, default: []].reduce(0) { $0 + $1.count }
            if left < length { return "\(name) had reported \(length) bytes as durable, and has \(left)" }
        }
        let lost = moment.complete.merged().subtracting(Array(self.records.values).merged())
        return lost.isEmpty ? nil : "\(lost) had been fetched completely, and have no record"
    }
}
