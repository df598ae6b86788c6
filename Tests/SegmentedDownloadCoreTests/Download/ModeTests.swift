import Testing

@testable import SegmentedDownloadCore

@Suite("How bytes are requested")
struct ModeTests {
    @Test("Ranges are lost with the third answer in a row that had none, and an answer with one ends the count")
    func refusals() {
        var mode = Fetching.Mode.segmented(rangeRefusals: 0)
        #expect(mode.servesRanges && !mode.hasLostRanges && !mode.isSingleStream)
        let first = mode.noteRefusal()
        #expect(!first && !mode.servesRanges && !mode.hasLostRanges)
        mode.noteServed()
        #expect(mode == .segmented(rangeRefusals: 0))
        let answers = (1...4).map { _ in mode.noteRefusal() }
        #expect(answers == [false, false, true, false] && mode == .segmented(rangeRefusals: 4))
        #expect(mode.hasLostRanges && !mode.isSingleStream)
    }

    @Test(
        "One stream never requests ranges again",
        arguments: [Fetching.Mode.stream, .fallback(forgetsFrom: 5)])
    func streams(before: Fetching.Mode) {
        var mode = before
        let isLast = mode.noteRefusal()
        mode.noteServed()
        #expect(!isLast && mode == before && mode.isSingleStream && !mode.servesRanges && !mode.hasLostRanges)
    }

    @Test("Claims behind the first hole are withdrawn once, with the first request of a stream that follows ranges")
    func forgetting() {
        var mode = Fetching.Mode.fallback(forgetsFrom: 5)
        #expect(mode.takeForgetsFrom() == 5)
        #expect(mode.takeForgetsFrom() == nil && mode == .fallback(forgetsFrom: nil))
        for other in [Fetching.Mode.stream, .segmented(rangeRefusals: 3)] {
            var mode = other
            #expect(mode.takeForgetsFrom() == nil && mode == other)
        }
    }

    @Test("A proof that is awaited ends once; where none is needed none was given")
    func proof() {
        var (awaited, unneeded) = (Proving.Proof.awaited, Proving.Proof.unneeded)
        awaited.end()
        unneeded.end()
        #expect(awaited == .ended && unneeded == .unneeded)
    }

    @Test("Nothing is requested while bytes are withdrawn, the reference is replaced, or once the outcome is known")
    func disturbed() {
        let settled = Fetching.sample(hosts: ["one", "two"])
        #expect(settled.isUndisturbed)
        for change in [
            { $0.outcome = .complete }, { $0.withdrawals.add([0..<1]) }, { $0.withdrawals.add(.first) },
            { _ = $0.revise(withdrawing: [], remarks: false) },
            {
                $0.sources[SourceID(1)].trust = .sampled
                $0.sources[SourceID(1)].resource = .tagged("\"b\"", length: 64 << 20)
                $0.sources[.first].trust = .failed
            },
        ] as [(inout Fetching) -> Void] {
            var fetching = settled
            change(&fetching)
            #expect(!fetching.isUndisturbed && fetching.ask() == nil)
        }
    }

    @Test("A stream that follows ranges ends all comparisons by samples, and keeps what is before the first hole")
    func fallsBack() {
        var fetching = Fetching.sample(missing: [100..<200, 300..<64 << 20], hosts: ["one", "two"])
        fetching.comparisons.audits.choose([Audit(spot: 0..<1, contributor: .source(.first))])
        fetching.comparisons.disputes.add(Dispute(differingSource: SourceID(1), offset: 0, byte: 1))
        fetching.fallBack()
        #expect(fetching.mode == .fallback(forgetsFrom: 100) && fetching.target == 1)
        #expect(
            fetching.plan.missing == [100..<64 << 20] && fetching.comparisons.audits.isEmpty
                && fetching.comparisons.disputes.isEmpty)
    }

    @Test("A new number of connections is for ranges; a file that was one stream from the start keeps its one")
    func updates() {
        for (mode, target) in [
            (Fetching.Mode.segmented(rangeRefusals: 0), 7), (.fallback(forgetsFrom: nil), 7), (.stream, 4),
        ] {
            var fetching = Fetching.sample()
            fetching.mode = mode
            var machine = DownloadStateMachine(settings: fetching.settings, seed: 1)
            machine.state = .fetching(fetching)
            _ = machine.update(segments: .exactly(7))
            guard case .fetching(let updated) = machine.state else {
                Issue.record("it no longer fetches")
                return
            }
            #expect(updated.traffic.controller.target == target && updated.settings.segments == .exactly(7))
        }
    }
}
