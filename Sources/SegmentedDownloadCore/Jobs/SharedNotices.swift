/// The notices that the processes of one user on one machine share.
///
/// It is a table of records of fixed size. A process writes one record with one call, and no process waits for another:
/// records that are torn, foreign or expired are ignored, and of two records that are written to the same place at the
/// same time one is lost. Then a process sends a request that the host refuses, or a place is free for some seconds.
///
/// Times are measured from the start of the machine (`CLOCK_BOOTTIME`): all processes have the same clock, and setting the
/// time of day does not move it. The checksum includes the ID of the boot.
package struct SharedNotices: Hashable, Sendable {
    /// Kind and checksum, 4 bytes each; host, time of writing and end, 8 bytes each, the times in nanoseconds.
    package static let recordLength = 32
    /// 128: one page, with at most three records for each host. More hosts than that do not refuse requests at the same time.
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

    /// The record of a notice, and its offset in the table. Nil if it does not replace the one of its subject.
    ///
    /// A record replaces the earlier one of its subject, or else the record that ends first among the host's places.
    package func record(of notice: HostNotice) -> (offset: Int, bytes: [UInt8])? {
        let first = Int(notice.host.rawValue % UInt64(Self.recordCount))
        let places = (0..<Self.placesPerHost).map { (first + $0) % Self.recordCount }
        let known = places.first { self.records[$0]?.subject == notice.subject }
        if let known, let record = self.records[known], !notice.replaces(record) { return nil }
        let end = { (place: Int) in self.records[place]?.until ?? .zero }
        guard let place = known ?? places.min(by: { end($0) < end($1) }) else { return nil }
        var body = ByteWriter()
        body.write(notice.host.rawValue)
        body.write(self.now.wholeNanoseconds)
        body.write(notice.until.wholeNanoseconds)
        var record = ByteWriter()
        record.write(notice.kind.rawValue)
        record.write(Self.checksum(of: notice.kind, body.bytes, bootID: self.bootID))
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

extension Duration {
    /// The duration in nanoseconds, rounded toward zero. It must be below 292 years.
    fileprivate var wholeNanoseconds: Int64 {
        self.components.seconds * 1_000_000_000 + self.components.attoseconds / 1_000_000_000
    }
}
