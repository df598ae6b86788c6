import Testing

@testable import SegmentedDownloadCore

/// What follows once no more is fetched.
@Suite("Outcomes of fetching")
struct OutcomeTests {
    private static let length: Int64 = 64 << 20
    private static let resource = RemoteResource.tagged("\"a\"", length: Self.length)

    @Test("The number of connections that paid is reported if there is one source, and not for several together")
    func connectionCountFound() {
        for hosts in [["one"], ["one", "two"]] {
            var fetching = Fetching.sample(hosts: hosts) { $0.segments = .automatic }
            fetching.traffic.controller.refused(open: 1, now: .zero)
            #expect(fetching.traffic.controller.limitObserved == 1)
            fetching.outcome = .complete
            var machine = DownloadStateMachine(settings: fetching.settings, seed: 1)
            machine.state = .fetching(fetching)
            let actions = machine.advanceFetching()
            #expect(actions.contains(.report(.connectionCountFound(1))) == (hosts.count == 1))
            #expect(actions.last?.isPlace == true)
        }
    }

    @Test("A part that belongs to another file is made durable before it is set aside")
    func setAside() throws {
        let end: Int64 = Self.length / 2
        let saved = SavedPartial(
            resource: Self.resource, completeLength: Self.length, missing: [end..<Self.length], reference: nil,
            marked: [MarkedRanges(mark: 9, ranges: [0..<end])])
        var script = Script(.exactly(1))
        script.tell(.surveyed(.partial(saved)))
        let probe = try #require(script.leases.first)
        script.accept(probe, Self.resource)
        script.tell(.prepared())
        _ = script.take()
        script.end(probe, .differs(at: end - 1, byte: 1))
        #expect(script.take() == [.checkpoint(isPause: true)] && script.orders.isEmpty)
        script.tell(.checkpointed(bytes: end))
        #expect(script.orders.last?.request == RangeRequest())
    }

    @Test("Only the run that requests the last block of a complete part again withdraws it")
    func lastBlock() throws {
        let tail = Self.length - BlockLayout.blockLength
        let unproven = RemoteResource(completeLength: Self.length)
        var script = Script(.exactly(1))
        for (missing, mode) in [
            ([], .adoptedUp(to: tail)), ([tail + 100..<Self.length], .adopted),
        ] as [([Range<Int64>], Preparation.Mode)] {
            script.tell(
                .surveyed(
                    .partial(SavedPartial(resource: unproven, completeLength: Self.length, missing: missing))))
            _ = script.take()
            let probe = try #require(script.leases.last)
            script.accept(probe, unproven)
            let modes = script.take().compactMap {
                if case .prepare(let preparation) = $0 { preparation.mode } else { nil }
            }
            #expect(modes == [mode])
            script.tell(.prepared())
            script.tell(.pause)
            for lease in script.leases { script.end(lease, .revoked) }
            script.answerCheckpoints()
            #expect(script.conclusion == .paused)
            script.tell(.resume)
        }
    }
}
