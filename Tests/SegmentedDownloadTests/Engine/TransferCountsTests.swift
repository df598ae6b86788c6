import Testing

@testable import SegmentedDownload

/// What a download counts.
@Suite("The counts of a transfer")
struct TransferCountsTests {
    @Test("Requests and bytes add up, and of connections the most at once counts")
    func adds() {
        var counts = TransferCounts()
        #expect(counts.requests == 0 && counts.bytesFetched == 0 && counts.connectionsPeak == 0)
        counts.add(requests: 1, connections: 3)
        counts.add(bytesFetched: 100)
        counts.add(requests: 2, bytesFetched: 11, connections: 2)
        #expect(counts.requests == 3 && counts.bytesFetched == 111 && counts.connectionsPeak == 3)
    }
}
