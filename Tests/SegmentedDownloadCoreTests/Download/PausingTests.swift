import SegmentedDownloadCore
import Testing

@Suite("Pausing, resuming, cancelling")
struct PausingTests {
    private static let resource = RemoteResource.tagged("\"a\"", length: 10 << 20)
    private static let saved = SavedPartial(resource: resource, completeLength: 10 << 20, missing: [5..<(10 << 20)])

    /// The states in which a user's command may arrive, which determine what happens to the operation under way.
    enum Moment: CaseIterable, Sendable {
        case queued, surveying, probing, preparing, fetching, settling, placing
    }

    private static func script(at moment: Moment) -> Script {
        var limits = GroupStateMachine.Limits()
        if moment == .queued {
            limits.downloads = 1
            var script = Script(limits: limits)
            script.tell(.pause)
            script.tell(.surveyed(.nothing))
            // The survey has answered; its interruption came too late.
            _ = script.take()
            return script
        }
        var script = Script(.exactly(moment == .placing ? 1 : 2))
        if moment == .surveying { return script }
        script.tell(.surveyed(.nothing))
        if moment == .probing { return script }
        script.accept(0, Self.resource)
        if moment == .preparing { return script }
        script.tell(.prepared())
        if moment == .fetching { return script }
        if moment == .settling {
            script.tell(.pause)
            return script
        }
        script.complete(0)
        return script
    }

    /// The actions to answer. A step that is interrupted has no other answer, and if that is requested twice, only one.
    private static func take(_ script: inout Script) -> [DownloadAction] {
        let actions = script.take()
        guard let interruption = actions.firstIndex(of: .interrupt) else { return actions }
        return actions.enumerated().filter { number, action in
            number == interruption || action != .survey && action != .interrupt
        }.map(\.element)
    }

    /// Has every operation under way complete, until none is left.
    private static func settle(_ script: inout Script) {
        for _ in 0..<10 where script.conclusion == nil {
            for action in Self.take(&script) {
                switch action {
                case .survey: script.tell(.surveyed(.nothing))
                case .prepare: script.tell(.prepared())
                case .revoke(let lease): script.end(lease.rawValue, .revoked)
                case .answer(let lease, .stop): script.end(lease.rawValue, .finished)
                case .checkpoint: script.tell(.checkpointed(bytes: 0))
                case .revise: script.tell(.revised)
                case .interrupt: script.tell(.storageFailed(DownloadError(.cancelled, "interrupted")))
                case .discard: script.tell(.discarded)
                case .answer, .narrow, .place, .replaceExisting, .require, .report, .conclude: break
                }
            }
        }
    }

    @Test("A pause in any state ends at rest, without connections", arguments: Moment.allCases)
    func pauses(moment: Moment) {
        var script = Self.script(at: moment)
        script.tell(.pause)
        Self.settle(&script)
        #expect(script.conclusion == .paused)
        #expect(script.machine.isIdle)
    }

    @Test("A pause and a resume before it took effect cancel out", arguments: Moment.allCases)
    func pausesAndResumes(moment: Moment) {
        var script = Self.script(at: moment)
        script.tell(.pause)
        script.tell(.resume)
        for _ in 0..<4 {
            for action in Self.take(&script) {
                switch action {
                case .prepare: script.tell(.prepared())
                case .revoke(let lease): script.end(lease.rawValue, .revoked)
                case .checkpoint: script.tell(.checkpointed(bytes: 0))
                case .revise: script.tell(.revised)
                case .interrupt: script.tell(.storageFailed(DownloadError(.cancelled, "interrupted")))
                case .survey: script.tell(.surveyed(.nothing))
                case .answer, .narrow, .place, .replaceExisting, .require, .discard, .report, .conclude: break
                }
            }
        }
        #expect(script.conclusion != .paused)
    }

    @Test("A download that is resumed while its survey is being interrupted surveys again")
    func surveysAgain() {
        var script = Self.script(at: .surveying)
        _ = script.take()
        script.tell(.pause)
        script.tell(.resume)
        #expect(script.take().contains(.interrupt))
        script.tell(.storageFailed(DownloadError(.cancelled, "interrupted")))
        #expect(script.take().contains(.survey) && script.conclusion == nil)
        script.tell(.surveyed(.nothing))
        #expect(script.conclusion == nil && !script.machine.isIdle)
    }

    @Test("Of pause, resume and pause the last counts", arguments: Moment.allCases)
    func lastWordCounts(moment: Moment) {
        var script = Self.script(at: moment)
        script.tell(.pause)
        script.tell(.resume)
        script.tell(.pause)
        Self.settle(&script)
        #expect(script.conclusion == .paused)
    }

    @Test("A cancellation in any state deletes the part, and a pause does not revoke it", arguments: Moment.allCases)
    func cancels(moment: Moment) {
        var script = Self.script(at: moment)
        var discards = 0
        script.tell(.cancel(keepingPartial: false))
        if script.conclusion == nil { script.tell(.pause) }
        for _ in 0..<10 where script.conclusion == nil {
            for action in Self.take(&script) {
                switch action {
                case .survey: script.tell(.surveyed(.nothing))
                case .prepare: script.tell(.prepared())
                case .revoke(let lease): script.end(lease.rawValue, .revoked)
                case .checkpoint: script.tell(.checkpointed(bytes: 0))
                case .revise: script.tell(.revised)
                case .interrupt: script.tell(.storageFailed(DownloadError(.cancelled, "interrupted")))
                case .discard:
                    discards += 1
                    script.tell(.discarded)
                case .answer, .narrow, .place, .replaceExisting, .require, .report, .conclude: break
                }
            }
        }
        #expect(script.conclusion == .cancelled)
        #expect(discards == 1)
    }

    @Test("A pause in mid-flight revokes every lease, then checkpoints, then rests")
    func order() {
        var script = Self.script(at: .fetching)
        _ = script.take()
        script.tell(.pause)
        #expect(script.take() == [.revoke(LeaseID(0)), .revoke(LeaseID(1))])
        script.end(0, .revoked)
        #expect(script.take().isEmpty)
        script.end(1, .revoked)
        #expect(script.take() == [.checkpoint(isPause: true)])
        script.tell(.checkpointed(bytes: 0))
        #expect(script.take() == [.conclude(.paused)])
    }

    @Test("After a pause the download surveys its part again and resumes from it")
    func resumes() {
        var script = Self.script(at: .fetching)
        script.tell(.pause)
        Self.settle(&script)
        script.tell(.resume)
        #expect(script.take().last == .survey)
        script.tell(.surveyed(.partial(Self.saved)))
        #expect(script.orders.last?.request.lowerBound == 5)
        #expect((script.leases.last ?? 0) > 1, "lease numbers are never reused")
    }

    @Test("A pause that a failure preceded does not stop the next run")
    func stalePause() {
        for moment in [Moment.surveying, .preparing, .placing] {
            var script = Self.script(at: moment)
            script.tell(.pause)
            script.tell(.storageFailed(DownloadError(.file, "input/output error")))
            if moment == .placing { script.tell(.checkpointed(bytes: 0)) }
            #expect(script.conclusion != nil)
            script.tell(.resume)
            script.tell(.surveyed(.nothing))
            #expect(script.conclusion == nil, "\(moment)")
        }
    }

    @Test("A resume that a failure preceded does not undo the next pause")
    func staleResumption() {
        var script = Self.script(at: .fetching)
        script.tell(.pause)
        script.tell(.resume)
        for lease in script.leases { script.end(lease, .revoked) }
        script.tell(.checkpointFailed(DownloadError(.file, "input/output error")))
        #expect(script.failure?.code == .file)
        script.tell(.resume)
        script.tell(.surveyed(.nothing))
        script.tell(.pause)
        Self.settle(&script)
        #expect(script.conclusion == .paused)
    }

    @Test("A cancellation that deletes does so even if the last checkpoint failed")
    func cancelOverFailedCheckpoint() {
        var script = Self.script(at: .fetching)
        script.progress(0, to: 100)
        script.wait(.seconds(6))
        script.tell(.cancel(keepingPartial: false))
        for lease in script.leases { script.end(lease, .revoked) }
        _ = script.take()
        script.tell(.checkpointFailed(DownloadError(.file, "input/output error")))
        #expect(script.take() == [.discard])
    }

    @Test("A file that is placed before the pause takes effect is complete")
    func placedAnyway() {
        var script = Self.script(at: .placing)
        script.tell(.pause)
        script.tellPlaced()
        #expect(script.isCompleted)
    }

    @Test("A wrong digest fails the download despite a pause")
    func integrityOutlives() {
        var script = Self.script(at: .placing)
        script.tell(.pause)
        script.tell(.storageFailed(DownloadError(.integrity, "another digest")))
        script.tell(.checkpointed(bytes: 0))
        #expect(script.failure?.code == .integrity)
    }

    @Test("A placed file cannot be paused, cancelled or fetched again")
    func completedIsFinal() {
        var script = Self.script(at: .placing)
        script.tellPlaced()
        _ = script.take()
        script.tell(.pause)
        script.tell(.cancel(keepingPartial: false))
        script.tell(.resume)
        script.wait(.seconds(1))
        #expect(script.take().isEmpty)
        #expect(script.isCompleted)
    }
}
