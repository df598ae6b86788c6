import SegmentedDownloadCore
import Testing

/// The table through which processes share notices.
@Suite("Shared notices")
struct SharedNoticesTests {
    private static let length = SharedNotices.recordCount * SharedNotices.recordLength

    private static func table(
        _ bytes: [UInt8], boot: String = "boot", at now: Duration = .seconds(100)
    ) -> SharedNotices {
        SharedNotices(decoding: bytes, bootID: boot, now: now)
    }

    private static func refusal(_ host: String = "host", until seconds: Int = 110) -> HostNotice {
        Self.notice(.refusal, host, until: seconds)
    }

    private static func notice(_ kind: HostNotice.Kind, _ host: String = "host", until seconds: Int = 110) -> HostNotice
    {
        HostNotice(kind, host: HostKey(host), until: .seconds(seconds))
    }

    /// The bytes of a table after a process has recorded a notice.
    private static func adding(
        _ notice: HostNotice, to bytes: [UInt8] = [], at now: Duration = .seconds(100)
    ) throws -> [UInt8] {
        let (offset, record) = try #require(Self.table(bytes, at: now).record(of: notice))
        #expect(record.count == SharedNotices.recordLength)
        var table = bytes + Array(repeating: 0, count: max(Self.length - bytes.count, 0))
        table.replaceSubrange(offset..<offset + record.count, with: record)
        return table
    }

    @Test("What one process records, another reads until its time is over")
    func roundTrip() throws {
        let bytes = try Self.adding(Self.refusal())
        #expect(bytes.count == Self.length)
        #expect(Self.table(bytes).notices == [Self.refusal()])
        #expect(Self.table(bytes, at: .milliseconds(109_999)).notices.count == 1)
        #expect(Self.table(bytes, at: .seconds(110)).notices.isEmpty)
    }

    @Test("A later end replaces the record of a host, and an earlier one does not")
    func merging() throws {
        let bytes = try Self.adding(Self.refusal(until: 110))
        #expect(Self.table(bytes).record(of: Self.refusal(until: 110)) == nil)
        #expect(Self.table(bytes).record(of: Self.refusal(until: 105)) == nil)
        #expect(Self.table(try Self.adding(Self.refusal(until: 120), to: bytes)).notices == [Self.refusal(until: 120)])
    }

    @Test("A host has one record for a refusal, one for a task that waits, and one for an offer and its end")
    func kinds() throws {
        var bytes: [UInt8] = []
        for kind in HostNotice.Kind.allCases { bytes = try Self.adding(Self.notice(kind), to: bytes) }
        #expect(Self.table(bytes).notices.map(\.kind) == [.refusal, .waiting, .taken])
        #expect(Self.table(bytes).record(of: Self.notice(.taken)) == nil)
        bytes = try Self.adding(Self.notice(.offer, until: 112), to: bytes)
        #expect(Self.table(bytes).notices == [Self.refusal(), Self.notice(.waiting), Self.notice(.offer, until: 112)])
        // A task that waits for a shorter time is another one that waits.
        bytes = try Self.adding(Self.notice(.waiting, until: 105), to: bytes)
        #expect(Self.table(bytes).notices.contains(Self.notice(.waiting, until: 105)))
        #expect(Self.table(bytes).record(of: Self.notice(.waiting, until: 105)) == nil)
    }

    @Test("A record with any bit changed, or cut anywhere, is ignored", arguments: HostNotice.Kind.allCases)
    func torn(kind: HostNotice.Kind) throws {
        let bytes = try Self.adding(Self.notice(kind))
        let start = try #require(bytes.firstIndex { $0 != 0 })
        for bit in 0..<SharedNotices.recordLength * 8 {
            var torn = bytes
            torn[start + bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(Self.table(torn).notices.isEmpty, "bit \(bit)")
        }
        for count in start..<start + SharedNotices.recordLength {
            #expect(Self.table(Array(bytes[..<count])).notices.isEmpty)
        }
        #expect(Self.table(Array(repeating: 0xFF, count: Self.length)).notices.isEmpty)
    }

    @Test("A record of another boot, from the future, or for longer than a host may ask is ignored")
    func foreign() throws {
        let bytes = try Self.adding(Self.refusal())
        #expect(Self.table(bytes, boot: "another").notices.isEmpty)
        #expect(Self.table(bytes, at: .seconds(99)).notices.isEmpty)
        let longest = try Self.adding(Self.refusal(until: 700))
        #expect(Self.table(longest).notices.count == 1)
        let tooLong = try Self.adding(Self.refusal(until: 701))
        #expect(Self.table(tooLong).notices.isEmpty)
    }

    @Test("Many hosts share the table; one that finds its places taken replaces the record that ends first")
    func crowded() throws {
        var bytes: [UInt8] = []
        for number in 0..<1000 {
            bytes = try Self.adding(Self.refusal("host\(number)", until: 200 + number % 300), to: bytes)
            #expect(Self.table(bytes).notices.contains(Self.refusal("host\(number)", until: 200 + number % 300)))
        }
        let hosts = Self.table(bytes).notices.map(\.host)
        #expect(hosts.count == SharedNotices.recordCount && Set(hosts).count == hosts.count)
    }

    @Test("Only a refusal that states how long to wait is shared, and only if that is at most ten minutes")
    func shared() {
        let refusal = { (status: Int, field: String?) in
            RangeResponse.refused(
                status: status, retryAfter: field.flatMap { RetryAfter(fieldValue: $0, date: nil, fallbackNow: nil) }
            ).notice(of: HostKey("host"), now: .seconds(1))?.until
        }
        #expect(refusal(429, "3") == .seconds(4))
        #expect(refusal(503, "600") == .seconds(601))
        #expect(refusal(503, "601") == nil && refusal(503, "99999999999999999999") == nil)
        #expect(refusal(429, nil) == nil && refusal(429, "0") == nil && refusal(500, "3") == nil)
    }
}
