import SegmentedDownload
import SegmentedDownloadCore

/// Checks the invariants of a simulation after every job, sync, rename and opened connection.
final class Checker: @unchecked Sendable {
    // Unchecked: the whole simulation runs on one thread.
    private let disk: SimulatedDisk
    private let network: SimulatedNetwork
    private var connectionsMax = Int.max
    /// The limit before the last change: connections under way at the change were opened under it.
    private var connectionsBefore = Int.max
    private var heldSince: Duration = .zero
    private var rate: Int64?
    /// The least memory per connection under a memory limit, as ``DownloadLimits/memory`` documents.
    private static let memoryShareMin: Int64 = 128 << 10
    private var memory: (bytes: Int, connections: Int)?
    private var deliveredBefore = 0
    private var requestsBefore = 0
    /// What was stated about the files.
    let ledger: StatementLedger
    /// Whether runs without faults may end with `integrity`, because of what was stated in earlier ones.
    var mayDiffer = false
    /// Whether another user planted this file.
    var isPlanted: (SimulatedDisk.Inode) -> Bool = { _ in false }
    /// The files for which the run requests the twin's URL.
    var expectsTwin: [Int: Bool] = [:]
    /// The number of connections each file requested; `nil` where the engine chooses it.
    var segments: [Int?] = []
    private(set) var violations: [String] = []
    /// Mixtures of an overwritten file's versions that got the file's name in this run. They are wrong unless the run
    /// reports that nothing confirmed the file.
    private var mixed: [(file: Int, inode: SimulatedDisk.Inode, violation: String)] = []
    /// The files that the run reports as complete, and whether with a proof.
    private var isConfirmed: [Int: Bool] = [:]
    /// Such files that were reported as unconfirmed.
    private var unconfirmed: [SimulatedDisk.Inode] = []
    private(set) var endings: [String] = []
    /// Sources that a download reported in this run as having different bytes, by file.
    private var blamed: [(file: Int, host: String)] = []
    /// A digest of the manifests that became durable and of the completed files.
    private(set) var digest: UInt64 = 7

    init(disk: SimulatedDisk, network: SimulatedNetwork) {
        self.disk = disk
        self.network = network
        self.ledger = StatementLedger(disk: disk, network: network)
        disk.onSync = { [unowned self] inode in self.synced(inode) }
        disk.onName = { [unowned self] name, inode in self.named(name, inode) }
        network.onOpen = { [unowned self] file in self.opened(file) }
    }

    func violate(_ what: String) { self.violations.append("\(what) at \(self.disk.clock.now)") }

    /// Whether every file ended well in the last run. `exists` counts: an earlier run completed the file, and the
    /// remote file changed since.
    var isDone: Bool {
        !self.endings.isEmpty && self.endings.allSatisfy { ["completed", "already", "exists"].contains($0) }
    }

    /// Checks memory and rate after every job: each connection holds at most one piece.
    func check() {
        if self.network.chunksOut > self.network.connections {
            self.violate("\(self.network.chunksOut) pieces are held by \(self.network.connections) connections")
        }
        self.checkMemory()
        self.checkRate()
    }

    /// Checks that the bytes held are within the memory limit; with more connections open than allowed, each keeps
    /// within its share.
    private func checkMemory() {
        guard let (bytes, connections) = self.memory else { return }
        if self.network.bytesHeld * connections > bytes * max(connections, self.network.connections) {
            self.violate("\(self.network.bytesHeld) bytes are held, of \(bytes)")
        }
    }

    /// Applies new limits to the checks that follow.
    func hold(to limits: DownloadLimits) {
        let now = self.disk.clock.now
        let isOneHost = self.network.others.isEmpty
        let memory = limits.memory.map { max($0, Self.memoryShareMin) }
        let shares = min(memory.map { Int($0 / Self.memoryShareMin) } ?? .max, limits.connections)
        self.memory = memory.map { (Int($0), shares) }
        let allowed = isOneHost ? min(shares, limits.connectionsPerHost) : shares
        self.connectionsBefore =
            self.heldSince == now ? max(self.connectionsBefore, self.connectionsMax) : self.connectionsMax
        self.connectionsMax = allowed
        self.heldSince = now
        self.rate = [limits.bytesPerSecond, isOneHost ? limits.bytesPerSecondPerHost : nil].compactMap { $0 }.min()
        self.deliveredBefore = self.network.bytesDelivered
        // Each open connection has a piece in hand.
        self.requestsBefore = self.network.requests - self.network.connections
    }

    /// Checks that no more bytes came than the rate allows, plus a burst and the piece in hand of each connection.
    private func checkRate() {
        guard let rate else { return }
        let seconds = (self.disk.clock.now - self.heldSince).inSeconds
        // Pieces of 50 ms, one for each bucket, and 100 ms of credit.
        let allowed = Int(Double(rate) * (seconds + 0.2)) + 2048
        let inHand = (self.network.requests - self.requestsBefore) * self.network.chunkMax
        let delivered = self.network.bytesDelivered - self.deliveredBefore
        if delivered > allowed + inHand {
            self.violate("\(delivered) bytes in \(seconds) s at \(rate) a second")
        }
    }

    private func opened(_ file: Int) {
        // A connection that is nearly done has half a second to finish, and may be redirected meanwhile.
        let isChanging = self.disk.clock.now - self.heldSince < .milliseconds(600)
        let allowed = isChanging ? max(self.connectionsMax, self.connectionsBefore) : self.connectionsMax
        if self.network.connections > allowed {
            self.violate("\(self.network.connections) connections of \(allowed)")
        }
        if let count = self.segments[file], self.network.connectionsByFile[file] ?? 0 > count {
            self.violate("file \(file) has more than \(count) connections")
        }
    }

    // MARK: Files and manifests

    /// Checks that a file with its final name is one complete version.
    ///
    /// - Parameter isNew: Whether the file gets its name now, in a run that requested one URL. Then it must be a
    ///   version of that URL.
    private func named(_ name: String, _ inode: SimulatedDisk.Inode, isNew: Bool = true) {
        guard let file = Self.file(name) else { return }
        let versions =
            isNew
            ? self.network.versions(of: file, isTwin: self.expectsTwin[file] ?? false)
            : self.network.versions(of: file)
        // What another program makes of a complete file is not the download's.
        if self.ledger.edited.contains(where: { $0 === inode }) { return }
        if !versions.contains(where: { self.wanted($0, of: file) == inode.bytes[...] }) {
            let distances = versions.map { version in
                let first = zip(version.bytes, inode.bytes).enumerated().first { $1.0 != $1.1 }?.offset
                return "\(version.bytes.count)@\(first.map { "\($0)" } ?? "-")"
            }
            let what =
                "\(name) gets its final name with \(inode.bytes.count) wrong bytes; "
                + "length and first difference of each version: \(distances)"
            guard !self.unconfirmed.contains(where: { $0 === inode }) else { return }
            guard self.network.isOverwritten(file) else { return self.violate(what) }
            self.mixed.append((file, inode, what))
        }
    }

    /// The bytes of a version that are requested: all, or a part.
    private func wanted(_ version: SimulatedOrigin.Version, of file: Int) -> ArraySlice<UInt8> {
        guard let part = self.network.parts[file] else { return version.bytes[...] }
        let end = part.last.map { min(Int($0) + 1, version.bytes.count) } ?? version.bytes.count
        return version.bytes[min(Int(part.first), end)..<end]
    }

    /// Evaluates the mixtures of an overwritten file's versions that got the file's name in this run.
    ///
    /// - Parameter wasKilled: Whether the run had no time to report that nothing confirmed the file.
    private func judgeMixed(wasKilled: Bool) {
        for (file, inode, what) in self.mixed {
            guard self.isConfirmed[file] == false || wasKilled && self.isConfirmed[file] == nil else {
                self.violate(what)
                continue
            }
            self.unconfirmed.append(inode)
        }
        self.mixed = []
    }

    private static func file(_ name: String) -> Int? { Int(name.dropFirst("file".count)) }

    /// Checks that a durable manifest claims as durable only bytes that are, and that all its claims are correct.
    private func synced(_ inode: SimulatedDisk.Inode) {
        for file in self.network.origins.indices where self.disk.names["file\(file).segdl"] === inode {
            self.digest = self.digest &* 31 &+ UInt64(CRC32(of: inode.durable).value)
            guard let part = self.disk.names["file\(file).segdl-part"] else { continue }
            self.checkClaims(file, manifest: inode.durable, durable: part.durable, volatile: part.bytes)
        }
    }

    /// Checks that an acknowledged pause is durable: the bytes that the download reports survive a power cut.
    func checkPaused(_ states: [ResumeState]) {
        // After a disk failure, a resumed download that pauses before its next sync has only what it can read back.
        guard self.disk.failures == 0 else { return }
        // Without a length, either the stream cannot be resumed, or the run paused before it fetched a byte: then the
        // part is as durable as an earlier run left it.
        for state in states where state.bytesDone > 0 && state.bytesTotal != nil {
            let path = state.path.string
            // The run found a finished file, which is durable by itself.
            if self.disk.durableNames[path] != nil { continue }
            guard let inode = self.disk.durableNames[path + ".segdl"],
                self.disk.durableNames[path + ".segdl-part"] != nil,
                let manifest = try? ManifestCodec.decode(inode.durable)
            else {
                self.violate("\(path) has paused with \(state.bytesDone) bytes without a durable manifest")
                continue
            }
            let durable = manifest.durable.settled().reduce(0) { $0 + $1.length }
            if durable < state.bytesDone {
                let claims = [manifest.durable, manifest.pending].map { $0.map(\.range) }
                let named = self.disk.names[path + ".segdl"]
                let seen = named.flatMap { try? ManifestCodec.decode($0.bytes) }?.durable.map(\.range)
                self.violate(
                    "\(path) has paused with \(state.bytesDone) bytes, of which \(durable) are durable: \(claims);"
                        + " readable are \(seen ?? []) of \(named === inode ? "the same" : "another") manifest")
            }
        }
    }

    private func checkClaims(_ file: Int, manifest: [UInt8], durable: [UInt8], volatile: [UInt8]) {
        guard let manifest = try? ManifestCodec.decode(manifest) else {
            self.violate("the manifest of file \(file) cannot be read after it was synced")
            return
        }
        if manifest.isOverstated { self.violate("the manifest of file \(file) counts claims that it does not have") }
        let pending = Set(manifest.pending)
        // Another program's changes are found by reading, at the latest when the file is complete.
        guard !self.ledger.partsEdited.contains(file) else { return }
        for claim in manifest.durable where !pending.contains(claim) && !Self.holds(claim, durable) {
            self.violate("file \(file): \(claim.range) is claimed as durable and is not")
        }
        // A change or damage within a response, or under an equal tag, is found only after its bytes were claimed.
        guard !self.network.isOverwritten(file), !self.network.damaged.contains(file),
            self.network.origins[file].identity != .sharedTag
        else { return }
        let versions = self.network.versions(of: file)
        let claims = (manifest.durable + manifest.pending).settled()
        for mark in Set(claims.map(\.mark)).sorted() {
            let own = claims.filter { $0.mark == mark }
            if !versions.contains(where: { version in
                own.allSatisfy { Self.holds($0, Array(self.wanted(version, of: file))) }
            }) {
                self.violate("file \(file): the claims with mark \(mark) match no single version")
            }
        }
    }

    private static func holds(_ claim: Claim, _ bytes: [UInt8]) -> Bool {
        guard claim.range.upperBound <= bytes.count else { return false }
        var crc = CRC32()
        bytes.withUnsafeBytes {
            crc.update(
                UnsafeRawBufferPointer(rebasing: $0[Int(claim.range.lowerBound)..<Int(claim.range.upperBound)]))
        }
        return crc == claim.crc
    }

    /// Checks after a crash that every file with a final name is complete.
    func checkAfterCrash() {
        for file in self.network.origins.indices {
            guard let inode = self.disk.names["file\(file)"], !self.isPlanted(inode) else { continue }
            self.named("file\(file)", inode, isNew: false)
        }
    }

    // MARK: Ends

    /// Starts a run: the reports of a crashed run no longer count.
    func begin() {
        self.blamed = []
        self.isConfirmed = [:]
    }

    /// Notes that a file is reported as complete, and whether with a proof.
    func noteCompleted(file: Int, isConfirmed: Bool) {
        self.isConfirmed[file] = isConfirmed
        for violation in self.ledger.complete(file) { self.violate(violation) }
    }

    /// Ends a run.
    func end(wasKilled: Bool) { self.judgeMixed(wasKilled: wasKilled) }

    /// Evaluates a note that a download reports about one of its sources.
    func handle(_ note: String, file: Int) {
        if let end = note.firstRange(of: " has other bytes")?.lowerBound {
            self.blamed.append((file, String(note[..<end])))
        } else if let end = note.firstRange(of: " is compared again")?.lowerBound {
            self.blamed.removeAll { $0 == (file, String(note[..<end])) }
        } else if note.contains("the digest does not match") {
            // The digest overrules what the sources say of each other.
            self.forgive(file: file)
        } else if note.contains("the remote file changed") {
            self.forgive(file: file)
            self.ledger.restart(file)
        }
    }

    /// Drops the reports about a file: after a failure or a pause another source may define it.
    func forgive(file: Int) { self.blamed.removeAll { $0.file == file } }

    /// Checks that no source of a completed file was reported although it has the same bytes.
    private func checkBlame() {
        for (file, host) in self.blamed
        where self.endings.indices.contains(file) && self.endings[file] == "completed" {
            // A digest may show that the one that was reported is right, and the others are not.
            guard self.ledger.demands[file]?.digest == nil else { continue }
            let sources = [self.network.origins[file]] + self.network.others[file]
            let number = host.hasPrefix("other") ? (Int(host.dropFirst("other".count)) ?? 0) + 1 : 0
            guard sources[number].versions.count == 1, let inode = self.disk.names["file\(file)"] else { continue }
            if sources[number].current.bytes == inode.bytes {
                self.violate("\(host) was reported as different and has the right bytes of file \(file)")
            }
        }
    }

    /// The outcome of a file that failed because an additional connection was refused.
    static let crowd = "crowd"

    /// Notes the outcomes of a run that no crash ended.
    func note(_ endings: [String], isCalm: Bool) {
        self.endings = endings
        self.checkBlame()
        if endings.contains("internal") { self.violate("a run ends with an internal error") }
        if endings.contains(Self.crowd) { self.violate("the refusal of an additional connection fails a file") }
        guard isCalm else { return }
        // `exists`: the file was completed before the remote file changed, and is not overwritten.
        let words = ["completed", "already", "changed", "exists"] + (self.mayDiffer ? ["integrity"] : [])
        for (file, ending) in endings.enumerated() where !words.contains(ending) {
            if ending == "network", self.mayEndEarly(file) { continue }
            self.violate("without faults a run ends with \(ending)")
        }
    }

    /// Whether a source has a shorter file than another one and does not state its length. If the length is known from
    /// the other one, the end of such a body looks like a broken connection every time.
    private func mayEndEarly(_ file: Int) -> Bool {
        guard !self.network.others.isEmpty else { return false }
        let sources = [self.network.origins[file]] + self.network.others[file]
        let longest = sources.map(\.current.bytes.count).max() ?? 0
        return sources.contains { !$0.tellsLength && $0.current.bytes.count < longest }
    }

    /// Checks the digests that a completed download reports.
    func compare(_ digests: [ExpectedDigest], of file: Int) {
        guard let bytes = self.disk.names["file\(file)"]?.bytes else { return }
        for digest in digests {
            var running = RunningDigest(digest.algorithm)
            bytes.withUnsafeBytes { running.update($0) }
            if running.hex != digest.hex {
                self.violate("file \(file) does not have the \(digest.algorithm) that was reported")
            }
        }
    }

    func checkEnd(wasFaultless: Bool, endings: [String]) {
        for (file, ending) in self.endings.enumerated() {
            guard let inode = self.disk.names["file\(file)"] else {
                self.violate("file \(file) is missing at the end: \(endings)")
                continue
            }
            self.named("file\(file)", inode, isNew: false)
            if ending == "completed" || ending == "already", !self.unconfirmed.contains(where: { $0 === inode }),
                inode.bytes != self.current(file),
                !self.network.origins[file].redirects, self.network.others.isEmpty
            {
                self.violate("file \(file) is reported as current and is an older version")
            }
            self.digest = self.digest &* 31 &+ UInt64(CRC32(of: inode.bytes).value)
            let olds = [".segdl-old"] + (2...9).map { ".segdl-old-\($0)" }
            let suffixes =
                [".segdl", ".segdl-part", ".segdl-new"] + olds.flatMap { [$0 + ".segdl", $0 + ".segdl-part"] }
            // A file that is complete already says nothing about what another URL left: that is kept. It may be a part
            // without a manifest, if the other URL's run was killed before its first checkpoint.
            let isKept =
                ending == "exists" || ending == "already" && (self.mayDiffer || !self.isPartOfSameURL(file))
            for suffix in suffixes where !isKept {
                if self.disk.names["file\(file)\(suffix)"] != nil {
                    self.violate("file\(file)\(suffix) is left behind")
                }
            }
        }
        if wasFaultless { self.checkWaste() }
    }

    /// Whether a manifest says that the part of a file was begun with the URL that the last run requested.
    private func isPartOfSameURL(_ file: Int) -> Bool {
        guard let inode = self.disk.names["file\(file).segdl"], let manifest = try? ManifestCodec.decode(inode.bytes),
            let source = manifest.header.sources.first
        else { return false }
        let isTwin =
            self.network.origins[file].hasVariants
            ? manifest.header.selection?.names.isEmpty == false : source.hasSuffix("/twin")
        return isTwin == (self.expectsTwin[file] == true)
    }

    /// The bytes that the present run requests, of the current version.
    func current(_ file: Int) -> [UInt8] {
        let origin = self.network.origins[file]
        let version = self.expectsTwin[file] == true ? origin.twin(of: origin.current) : origin.current
        return Array(self.wanted(version, of: file))
    }

    /// Checks that without faults nothing is fetched twice, except the piece in flight when a segment is cut short, and
    /// the fiftieth that hedging may request twice.
    private func checkWaste() {
        // Samples of other origins are fetched only to be compared.
        guard self.network.others.isEmpty else { return }
        let length = self.network.origins.reduce(0) { $0 + $1.current.bytes.count }
        let waste = self.network.bytesDelivered - length
        let files = self.network.origins.count
        let wasteMax = max(self.network.requests - files, 0) * self.network.chunkMax + length / 50
        if waste < 0 || waste > wasteMax {
            self.violate("\(waste) bytes were fetched twice in \(self.network.requests) requests")
        }
    }
}
