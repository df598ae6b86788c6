import Testing

@testable import SegmentedDownload

/// Who is under way in a group, and how the others have ended.
@Suite("A group's tally")
struct GroupTallyTests {
    private static let progress = DownloadProgress()
    private static let failed = DownloadEvent.failed(DownloadError(.network, "no answer"), Self.progress)
    private static let completed = DownloadEvent.completed(
        DownloadResult(
            reported: "file", bytes: 100, bytesFetched: 110, requests: 1, connectionsPeak: 1, duration: .seconds(1),
            crc32: nil, digests: [], verifiedBy: .none, wasAlreadyComplete: false))

    /// Whether the last active download of a group ends with an event.
    private static func isLast(_ tally: inout GroupTally, _ number: Int, _ event: DownloadEvent) -> Bool {
        tally.ended(number, event)
    }

    /// Completed, paused, failed and cancelled.
    private static func counts(_ tally: GroupTally) -> [Int] {
        [tally.summary.completed, tally.summary.paused, tally.summary.failed, tally.summary.cancelled]
    }

    @Test("Only the last active download's end is the group's")
    func last() {
        var tally = GroupTally()
        #expect(tally.isIdle)
        tally.added(1)
        tally.added(2)
        tally.added(3)
        tally.addedPaused(4)
        #expect(!tally.isIdle && Self.counts(tally) == [0, 1, 0, 0])
        #expect(!Self.isLast(&tally, 1, Self.completed))
        #expect(!Self.isLast(&tally, 2, Self.failed))
        #expect(!tally.isIdle)
        #expect(Self.isLast(&tally, 3, .paused(Self.progress)))
        #expect(tally.isIdle && Self.counts(tally) == [1, 2, 1, 0])
        #expect(tally.summary.bytes == 100 && tally.summary.bytesFetched == 110)
    }

    @Test("What was not active does not end the group")
    func paused() {
        var tally = GroupTally()
        tally.addedPaused(1)
        #expect(!Self.isLast(&tally, 1, .cancelled))
        #expect(tally.isIdle && Self.counts(tally) == [0, 0, 0, 1])
        // What is over is counted once.
        #expect(!Self.isLast(&tally, 1, .cancelled))
        #expect(Self.counts(tally) == [0, 0, 0, 1])
    }

    @Test("What is resumed is counted as active only, and what is over stays over")
    func reopened() {
        var tally = GroupTally()
        for number in 1...3 { tally.added(number) }
        _ = tally.ended(1, Self.failed)
        _ = tally.ended(2, .paused(Self.progress))
        #expect(Self.isLast(&tally, 3, Self.completed))
        for number in 1...3 { tally.reopened(number) }
        #expect(Self.counts(tally) == [1, 0, 0, 0] && !tally.isIdle)
        // A second resumption adds none.
        tally.reopened(1)
        #expect(!Self.isLast(&tally, 1, Self.completed))
        #expect(Self.isLast(&tally, 2, .cancelled))
        #expect(Self.counts(tally) == [2, 0, 0, 1] && tally.summary.bytes == 200)
    }

    @Test("An event that ends nothing changes nothing")
    func goesOn() {
        var tally = GroupTally()
        tally.added(1)
        tally.addedPaused(2)
        #expect(!Self.isLast(&tally, 1, .note("")) && !Self.isLast(&tally, 2, .note("")))
        #expect(!tally.isIdle)
        #expect(Self.isLast(&tally, 1, .cancelled))
        #expect(!Self.isLast(&tally, 2, .cancelled))
    }

    @Test("What is removed is not counted as paused or failed any more, and an active one leaves the group idle")
    func removed() {
        var tally = GroupTally()
        for number in 1...3 { tally.added(number) }
        _ = tally.ended(1, Self.failed)
        _ = tally.ended(2, .paused(Self.progress))
        for number in 1...3 { tally.removed(number) }
        #expect(tally.isIdle && Self.counts(tally) == [0, 0, 0, 0])
        tally.removed(3)
        #expect(tally.isIdle)
    }

    @Test("A failure stays counted when its download leaves the list as it ends, and a pause does not")
    func delisted() {
        var tally = GroupTally()
        for number in 1...2 { tally.added(number) }
        _ = tally.ended(1, .failed(DownloadError(.network, "reset"), DownloadProgress()))
        tally.delisted(1)
        #expect(tally.summary.failed == 1)
        let isLast = tally.ended(2, .paused(DownloadProgress()))
        tally.delisted(2)
        #expect(isLast && tally.summary.paused == 0 && tally.summary.failed == 1)
        tally.removed(1)
        #expect(tally.summary.failed == 1)
    }
}
