/// A host in the records that processes share: a hash of the key that ``ConcurrencyBudget`` has for it.
package struct HostKey: Hashable, Sendable {
    package let rawValue: UInt64

    /// FNV-1a, because every process must compute the same value. The records do not show which hosts were asked.
    package init(_ host: String) {
        self.rawValue = host.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    fileprivate init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// What a process lets the other processes of the machine know of a host.
package struct HostNotice: Hashable, Sendable {
    package enum Kind: UInt32, Hashable, Sendable {
        /// The host has refused a request, and must not be asked before the time.
        case refusal = 1
        /// The host has refused a task without a time, and the task asks again at the time: see ``PlaceTurns``.
        case waiting = 2
        /// A task has given up its place at the host, and leaves it to others until the time.
        case offer = 3
        /// A task takes the place that was offered until the time.
        case taken = 4
    }

    package let kind: Kind
    package let host: HostKey
    package let until: Duration

    package init(_ kind: Kind, host: HostKey, until: Duration) {
        (self.kind, self.host, self.until) = (kind, host, until)
    }

    /// The notice of the same subject replaces this one. An offer and its end have one subject.
    package struct Subject: Hashable, Sendable {
        fileprivate let kind: Kind
        fileprivate let host: HostKey
    }

    package var subject: Subject { Subject(kind: self.kind == .taken ? .offer : self.kind, host: self.host) }

    /// Whether it says more than another one of the same subject.
    package func succeeds(_ other: HostNotice) -> Bool { self.kind != other.kind || self.until > other.until }
}

/// The refusals that the processes of one user on one machine share.
///
/// It is a table of records of fixed size. A process writes one record with one call, and no process waits for another:
/// records that are torn, foreign or expired are ignored, and of two records that are written to the same place at the
/// same time one is lost. Then a process sends a request that the host refuses.
///
/// Times are measured from the start of the machine (`CLOCK_BOOTTIME`): all processes have the same clock, and setting the
/// time of day does not move it. The checksum includes the ID of the boot.
package struct SharedRefusals: Hashable, Sendable {
    /// Kind and checksum, 4 bytes each; host, time of writing and end, 8 bytes each, the times in nanoseconds.
    package static let recordLength = 32
    /// 128: one page. More hosts than that do not refuse requests at the same time.
    package static let recordCount = 128
    /// The places at which a host's record may be, counted from that of its hash.
    private static let placesPerHost = 4

    private let records: [HostNotice?]
    private let bootID: String
    private let now: Duration

    /// Reads a table. Bytes that are no valid record count as none.
    package init(decoding bytes: [UInt8], bootID: String, now: Duration) {
        self.records = (0..<Self.recordCount).map { place in
            let start = place * Self.recordLength
            guard bytes.count >= start + Self.recordLength else { return nil }
            return Self.record(bytes[start..<start + Self.recordLength], bootID: bootID, now: now)
        }
        self.bootID = bootID
        self.now = now
    }

    /// The notices in force.
    package var notices: [HostNotice] { self.records.compactMap { $0 } }

    /// The record of a refusal, and its offset in the table. Nil if the host has a record that ends no earlier.
    ///
    /// A host's record replaces its earlier one, or else the record that ends first among its places.
    package func record(of refusal: HostNotice) -> (offset: Int, bytes: [UInt8])? {
        let first = Int(refusal.host.rawValue % UInt64(Self.recordCount))
        let places = (0..<Self.placesPerHost).map { (first + $0) % Self.recordCount }
        let known = places.first { self.records[$0]?.subject == refusal.subject }
        if let known, let record = self.records[known], !refusal.succeeds(record) { return nil }
        let end = { (place: Int) in self.records[place]?.until ?? .zero }
        guard let place = known ?? places.min(by: { end($0) < end($1) }) else { return nil }
        var body = ByteWriter()
        body.write(refusal.host.rawValue)
        body.write(self.now.wholeNanoseconds)
        body.write(refusal.until.wholeNanoseconds)
        var record = ByteWriter()
        record.write(refusal.kind.rawValue)
        record.write(Self.checksum(of: refusal.kind, body.bytes, bootID: self.bootID))
        return (place * Self.recordLength, record.bytes + body.bytes)
    }

    private static func checksum(of kind: HostNotice.Kind, _ body: [UInt8], bootID: String) -> UInt32 {
        CRC32(of: [UInt8(kind.rawValue)] + body + Array(bootID.utf8)).value
    }

    /// Nil unless the record was written in this boot, is in force, and asks for no longer than a host may.
    private static func record(_ bytes: ArraySlice<UInt8>, bootID: String, now: Duration) -> HostNotice? {
        var head = ByteReader(bytes)
        guard let kind = (head.read() as UInt32?).flatMap(HostNotice.Kind.init), let checksum: UInt32 = head.read(),
            checksum == Self.checksum(of: kind, Array(bytes.dropFirst(8)), bootID: bootID),
            let host: UInt64 = head.read(),
            let written: Int64 = head.read(), let until: Int64 = head.read()
        else { return nil }
        let (writtenAt, end) = (Duration.nanoseconds(written), Duration.nanoseconds(until))
        guard writtenAt >= .zero, writtenAt <= now, now < end, end - writtenAt <= ConcurrencyBudget.retryAfterMax
        else { return nil }
        return HostNotice(kind, host: HostKey(rawValue: host), until: end)
    }
}

extension RangeResponse {
    /// The refusal that other processes should know of: one that states how long to wait, if a download waits so long.
    package func refusal(of host: HostKey, now: Duration) -> HostNotice? {
        guard case .refused(let status, let retryAfter?) = self, TransientStatus.refusals.contains(status),
            retryAfter.seconds > 0, .seconds(retryAfter.seconds) <= ConcurrencyBudget.retryAfterMax
        else { return nil }
        return HostNotice(.refusal, host: host, until: now + .seconds(retryAfter.seconds))
    }
}

extension Duration {
    /// The duration in nanoseconds, rounded toward zero. It must be below 292 years.
    fileprivate var wholeNanoseconds: Int64 {
        self.components.seconds * 1_000_000_000 + self.components.attoseconds / 1_000_000_000
    }
}
