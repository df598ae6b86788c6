import Testing

@testable import SegmentedDownloadCore

/// What is compared with what is on disk, and when.
@Suite("Comparing samples")
struct ProofTests {
    private static let length: Int64 = 64 << 20
    private static let sample = SampleSpots.length

    /// What is compared at first where only bytes prove that a part is of the same file.
    private static func proofs(_ runs: [Range<Int64>], seed: UInt64 = 1) -> [Range<Int64>] {
        Fetching.sample(
            length: Self.length, missing: runs.complement(in: Self.length), written: .init(ranges: runs),
            overlap: Self.sample, seed: seed
        ).comparisons.audits.open.map(\.spot)
    }

    @Test("Both ends of every long run are compared, however many there are, and all of every short one")
    func ends() {
        let sample = Self.sample
        #expect(Self.proofs([100..<300]) == [100..<300])
        #expect(Self.proofs([100..<100 + 2 * sample]) == [100..<100 + 2 * sample])
        #expect(
            Self.proofs([100..<101 + 2 * sample]) == [101 + sample..<101 + 2 * sample, 100..<100 + sample])
        let runs = stride(from: Int64(0), to: 300_000, by: 1000).map { start in start..<(start + 10) }
        #expect(Self.proofs(runs) == runs)
    }

    @Test("One random place is compared for each MiB, and no more than 32 of them")
    func randomCount() {
        let mebibyte: Int64 = 1 << 20
        #expect(Self.proofs([0..<mebibyte - 1]).count == 2)
        #expect(Self.proofs([0..<mebibyte]).count == 3)
        #expect(Self.proofs([0..<10 * mebibyte, 20 * mebibyte..<30 * mebibyte]).count == 4 + 20)
        #expect(Self.proofs([0..<63 * mebibyte]).count == 2 + 32)
    }

    @Test("Random places are as likely in one part of the runs as in another, and never reach out of a run")
    func randomPlaces() {
        let mebibyte: Int64 = 1 << 20
        let runs = [mebibyte..<5 * mebibyte, 32 * mebibyte..<44 * mebibyte]
        let spots = (0..<100).flatMap { Self.proofs(runs, seed: $0).dropFirst(4) }
        #expect(spots.count == 1600 && spots.allSatisfy { spot in runs.contains { $0.contains(spot.lowerBound) } })
        // A quarter of the bytes is in the first run.
        let first = spots.filter { runs[0].contains($0.lowerBound) }
        #expect((300...500).contains(first.count))
        #expect(first.contains { $0.lowerBound < 2 * mebibyte } && first.contains { $0.lowerBound > 4 * mebibyte })
        let second = spots.filter { runs[1].contains($0.lowerBound) }
        #expect(second.contains { $0.lowerBound < 34 * mebibyte } && second.contains { $0.lowerBound > 42 * mebibyte })
    }

    @Test("A random place near the end of a run is its last bytes")
    func randomEnds() {
        let length: Int64 = 2 * Self.sample + 1024
        let runs = stride(from: Int64(0), to: Self.length, by: 1 << 20).map { start in start..<(start + length) }
        let spots = (0..<50).flatMap { Self.proofs(runs, seed: $0).dropFirst(128) }
        #expect(spots.count == 100)
        for spot in spots {
            #expect(spot.upperBound - spot.lowerBound == Self.sample)
            #expect(runs.contains { $0.lowerBound <= spot.lowerBound && spot.upperBound <= $0.upperBound })
        }
        let isLast = spots.count { spot in runs.contains { $0.upperBound == spot.upperBound } }
        #expect((25...75).contains(isLast))
    }

    @Test("Each source's bytes are compared by themselves, those of earlier runs too")
    func groups() {
        let fetching = Fetching.sample(
            length: Self.length, missing: [300..<Self.length],
            written: .init(ranges: [0..<300], marked: [MarkedRanges(mark: 2, ranges: [100..<200])]),
            overlap: Self.sample)
        #expect(
            fetching.comparisons.audits.open.map(\.contributor) == [.source(.first), .source(.first), .earlier(0)])
        #expect(fetching.comparisons.audits.open.map(\.spot) == [0..<100, 200..<300, 100..<200])
    }

    // MARK: Room for samples

    @Test("One connection is kept for samples, for three seconds, while a mirror is unknown and enough is missing")
    func room() {
        let fetching = { (connections: Int, missing: Int64, hosts: Int) in
            Fetching.sample(
                length: Self.length, missing: [0..<missing], connections: connections,
                hosts: (0..<hosts).map { "\($0)" })
        }
        let least = Self.sample * Int64(Fetching.samplesMin) * 4
        let all = fetching(2, least + 1, 2)
        #expect(all.roomForSamples(now: .zero) == 1)
        #expect(all.roomForSamples(now: Fetching.samplingPatience - .nanoseconds(1)) == 1)
        #expect(all.roomForSamples(now: Fetching.samplingPatience) == 0)
        #expect(fetching(1, least + 1, 2).roomForSamples(now: .zero) == 0)
        #expect(fetching(2, least, 2).roomForSamples(now: .zero) == 0)
        #expect(fetching(2, least + 1, 1).roomForSamples(now: .zero) == 0)
        var known = all
        known.sources[SourceID(1)].trust = .sampled
        #expect(known.roomForSamples(now: .zero) == 0)
        var sampling = all
        _ = sampling.sample(0..<10, from: SourceID(1), now: .zero)
        #expect(sampling.roomForSamples(now: .zero) == 0)
    }

    // MARK: Answers to audits

    @Test("What a shorter answer left out of an audit is asked for again, what it said is not")
    func shortAnswer() throws {
        var fetching = Fetching.sample(
            length: Self.length, missing: [100..<Self.length], written: .init(ranges: [0..<100]), overlap: Self.sample)
        let order = try fetching.asked()
        #expect(order.isSample && order.spot == 0..<100)
        _ = fetching.responded(
            order.lease, .partial(ByteRange(0..<60), .tagged("\"a\"", length: Self.length)), now: .zero)
        fetching.observe(
            [LeaseObservation(lease: order.lease, position: 100, bytesReceived: 60, isWriting: false)], now: .zero)
        _ = fetching.ended(order.lease, .finished, now: .zero)
        #expect(fetching.comparisons.audits.open == [Audit(spot: 60..<100, contributor: .source(.first))])
    }

    @Test("An answer that brought more than it said leaves nothing out")
    func longAnswer() throws {
        var fetching = Fetching.sample(
            length: Self.length, missing: [100..<Self.length], written: .init(ranges: [0..<100]), overlap: Self.sample)
        let order = try fetching.asked()
        _ = fetching.responded(
            order.lease, .partial(ByteRange(0..<60), .tagged("\"a\"", length: Self.length)), now: .zero)
        fetching.observe(
            [LeaseObservation(lease: order.lease, position: 100, bytesReceived: 120, isWriting: false)], now: .zero)
        _ = fetching.ended(order.lease, .finished, now: .zero)
        #expect(fetching.comparisons.audits.isEmpty)
    }

    @Test("An audit that was answered is done, and the last one proves the file")
    func wholeAnswer() throws {
        var fetching = Fetching.sample(
            length: Self.length, missing: [100..<Self.length], written: .init(ranges: [0..<100]), overlap: Self.sample)
        #expect(fetching.awaitsProof && fetching.isCompared)
        let order = try fetching.asked()
        fetching.accept(order.lease, at: .zero)
        fetching.observe(
            [LeaseObservation(lease: order.lease, position: 100, bytesReceived: 100, isWriting: false)], now: .zero)
        _ = fetching.ended(order.lease, .finished, now: .zero)
        #expect(fetching.comparisons.audits.isEmpty && !fetching.awaitsProof && fetching.isCompared)
    }

    @Test("An audit that was not answered is asked for again", arguments: [LeaseEnd.finished, .revoked, .stopped])
    func noAnswer(end: LeaseEnd) throws {
        var fetching = Fetching.sample(
            length: Self.length, missing: [100..<Self.length], written: .init(ranges: [0..<100]), overlap: Self.sample)
        let order = try fetching.asked()
        fetching.accept(order.lease, at: .zero)
        _ = fetching.ended(order.lease, end, now: .zero)
        #expect(
            fetching.comparisons.audits.open == [Audit(spot: 0..<100, contributor: .source(.first))]
                && fetching.awaitsProof)
    }

    @Test("What differs from the file begun before is set aside, not blamed")
    func otherFile() throws {
        var fetching = Fetching.sample(
            length: Self.length, missing: [100..<Self.length], written: .init(ranges: [0..<100]), overlap: Self.sample)
        let order = try fetching.asked()
        fetching.accept(order.lease, at: .zero)
        fetching.observe(
            [LeaseObservation(lease: order.lease, position: 100, bytesReceived: 50, isWriting: false)], now: .zero)
        _ = fetching.ended(order.lease, .differs(at: 49, byte: 1), now: .zero)
        #expect(fetching.outcome != nil && fetching.outcome != .complete)
    }

    // MARK: Who brought it

    @Test("A file is compared if a comparison brought any of it in, or an earlier run's mirror, or a mirror now")
    func isCompared() {
        #expect(!Fetching.sample(hosts: ["one", "two"]).isCompared)
        let earlier = SourceTable.Written(ranges: [0..<10], marked: [MarkedRanges(mark: 2, ranges: [0..<10])])
        #expect(Fetching.sample(missing: [10..<64 << 20], written: earlier).isCompared)
        var fetching = Fetching.sample(hosts: ["one", "two"])
        fetching.sources.contribute(0..<10, by: .first)
        #expect(!fetching.isCompared)
        fetching.sources.contribute(10..<20, by: SourceID(1))
        #expect(fetching.isCompared)
    }

    @Test("Bytes are compared once more after an answer with another validator, but not those of a single response")
    func lastLook() throws {
        for (isOpen, responses) in [(false, 2), (true, 2), (true, 1)] {
            var fetching = Fetching.sample(length: 100_000, connections: 1)
            for response in 1...responses {
                let order = try fetching.asked()
                fetching.accept(order.lease, at: .zero)
                let isLast = response == responses
                if isLast, isOpen { fetching.sources[.first].deviations.disagreement.note("another tag") }
                fetching.bring(order.lease, to: isLast ? 100_000 : 70_000, at: .seconds(1))
                let cut = LeaseEnd.failed(DownloadError(.network, "reset", isTransient: true))
                _ = fetching.ended(order.lease, isLast ? .finished : cut, now: .seconds(1))
            }
            let isNeeded = isOpen && responses > 1
            #expect((fetching.outcome == .complete) == !isNeeded)
            #expect(
                fetching.comparisons.audits.open.map(\.spot) == (isNeeded ? [100_000 - Self.sample..<100_000] : []))
        }
    }

    @Test("A run of exactly two samples is compared at its end alone, and at no random place")
    func shortRuns() {
        let runs = stride(from: Int64(0), to: Self.length, by: 1 << 20).map { start in
            start..<(start + 2 * Self.sample)
        }
        #expect(Self.proofs(runs).count == runs.count)
    }
}
