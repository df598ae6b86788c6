import SegmentedDownloadCore
import Testing

/// Checkpoints, and what happens between the last byte and the finished file.
@Suite("Checkpoints and the end of a download")
struct CompletionTests {
    @Test("After the last byte is written, a connection that does not end does not delay the file")
    func lingeringConnection() throws {
        var script = Script.receiving(2)
        script.progress(0, to: 32 << 20)
        script.progress(1, to: 64 << 20)
        script.end(0, .finished)
        try script.confirm(Script.resource)
        for _ in 0..<100 { script.wait(.seconds(1)) }
        let actions = script.take()
        #expect(!actions.contains { $0.isPlace })
        #expect(actions.contains(.revoke(LeaseID(1))))
        script.end(1, .revoked)
        // A checkpoint may be due meanwhile.
        if actions.contains(.checkpoint(isPause: false)) { script.tell(.checkpointed(bytes: 64 << 20)) }
        #expect(script.take().last?.isPlace == true)
    }

    @Test("The file is not placed during a checkpoint, because its failure would affect the file")
    func placeAwaitsCheckpoint() throws {
        var script = Script.fetching(1)
        script.progress(0, to: 1 << 20)
        script.wait(.seconds(6))
        #expect(script.take().contains(.checkpoint(isPause: false)))
        script.complete(0)
        try script.confirm(.tagged("\"a\"", length: 64 << 20))
        #expect(!script.take().contains { $0.isPlace })
        script.tell(.checkpointed(bytes: 1 << 20))
        #expect(script.take() == [.place(length: 64 << 20)])
        script.tellPlaced()
        #expect(script.isCompleted)
    }

    @Test("A part changed by another process is surveyed and completed again a few times; a wrong digest is not")
    func healing() {
        let changed = DownloadError(.integrity, "cut", isTransient: true)
        var script = Script.fetching(1, length: 16 << 20)
        script.complete(0)
        for healing in 0..<DownloadStateMachine.healingsMax {
            #expect(script.take().last?.isPlace == true)
            script.tell(.storageFailed(changed))
            #expect(script.take().last == .survey)
            script.tell(.surveyed(.nothing))
            script.accept(healing + 1, .tagged("a", length: 16 << 20))
            script.tell(.prepared())
            script.complete(healing + 1)
        }
        #expect(script.take().last?.isPlace == true)
        script.tell(.storageFailed(changed))
        #expect(!script.take().contains(.survey))
        script.tell(.checkpointed(bytes: 0))
        #expect(script.conclusion == .failed(changed))

        var other = Script.fetching(1, length: 16 << 20)
        other.complete(0)
        _ = other.take()
        other.tell(.storageFailed(DownloadError(.integrity, "another digest")))
        #expect(!other.take().contains(.survey))
    }

    @Test("A checkpoint is due every 5 s or 64 MiB, never two at once, and never without bytes")
    func checkpoints() {
        var script = Script.fetching(.exactly(1), length: 1 << 30)
        _ = script.take()
        script.wait(.seconds(6))
        #expect(!script.take().contains(.checkpoint(isPause: false)))
        script.progress(0, to: 1)
        script.wait(.seconds(1))
        #expect(script.take().contains(.checkpoint(isPause: false)))
        script.progress(0, to: 200 << 20)
        script.wait(.seconds(6))
        #expect(!script.take().contains(.checkpoint(isPause: false)))
        script.tell(.checkpointed(bytes: 1))
        script.wait(.milliseconds(100))
        #expect(script.take().contains(.checkpoint(isPause: false)))
    }

    @Test("A failed checkpoint stops all fetching, and nothing more is claimed")
    func checkpointFails() {
        var script = Script.fetching(1)
        script.progress(0, to: 1)
        script.wait(.seconds(6))
        _ = script.take()
        script.tell(.checkpointFailed(DownloadError(.file, "input/output error")))
        #expect(script.take() == [.revoke(LeaseID(0))])
        script.end(0, .revoked)
        #expect(script.failure?.code == .file)
    }

    @Test("A complete file waits a second for the end of a response whose last byte has arrived, and no longer")
    func endsAreAwaited() {
        var script = Script.receiving(1, length: 8 << 20)
        _ = script.take()
        script.progress(0, to: 8 << 20)
        script.wait(.milliseconds(999))
        #expect(script.take().allSatisfy { if case .checkpoint = $0 { true } else { false } })
        script.wait(.milliseconds(1))
        #expect(script.take().contains(.revoke(LeaseID(0))))
    }

    @Test("A disk failure of one lease revokes all others and keeps the durable bytes")
    func diskFails() {
        var script = Script.receiving(2)
        _ = script.take()
        script.end(0, .storageFailed(DownloadError(.space, "no space")))
        #expect(script.take() == [.revoke(LeaseID(1))])
        script.end(1, .revoked)
        #expect(script.take() == [.checkpoint(isPause: true)])
        script.tell(.checkpointed(bytes: 0))
        #expect(script.failure?.code == .space)
    }

    @Test("A write that fails after the last byte was received fails the download")
    func diskFailsAtTheEnd() {
        var script = Script.receiving(2, length: 16 << 20)
        _ = script.take()
        script.progress(0, to: 8 << 20)
        script.complete(1)
        #expect(script.take() == [.revoke(LeaseID(0))])
        script.end(0, .storageFailed(DownloadError(.space, "no space")))
        script.tell(.checkpointed(bytes: 0))
        #expect(script.failure?.code == .space)
    }

    @Test("A run that takes longer than it may fails with what it has, and has all its time again when it goes on")
    func timeLimit() {
        var script = Script.fetching(1) { $0.timeLimit = .seconds(60) }
        func receive(_ lease: Int, _ script: inout Script) {
            script.wait(.milliseconds(1))
            for piece in 1...3 as ClosedRange<Int64> {
                #expect(script.conclusion == nil)
                script.progress(lease, to: piece << 20)
                if script.take().contains(.checkpoint(isPause: false)) { script.tell(.checkpointed(bytes: 0)) }
                script.wait(.seconds(20))
            }
            #expect(script.take() == [.revoke(LeaseID(lease))])
            script.end(lease, .revoked)
            #expect(script.take() == [.checkpoint(isPause: true)])
            script.tell(.checkpointed(bytes: 3 << 20))
            #expect(
                script.failure == DownloadError(.network, "the time limit of 60.0 s was reached", isTransient: false))
        }
        receive(0, &script)
        script.tell(.resume)
        script.wait(.seconds(600))
        script.tell(.surveyed(.nothing))
        script.accept(1, Script.resource)
        script.tell(.prepared())
        receive(1, &script)
    }

    @Test("The time limit does not fail a run that has all bytes, however long the disk takes")
    func timeLimitAtTheEnd() throws {
        var script = Script.fetching(1) { $0.timeLimit = .seconds(60) }
        script.wait(.milliseconds(1))
        script.progress(0, to: 1 << 20)
        script.wait(.seconds(20))
        #expect(script.take().contains(.checkpoint(isPause: false)))
        script.complete(0)
        try script.confirm(.tagged("\"a\"", length: 64 << 20))
        script.wait(.seconds(600))
        script.tell(.checkpointed(bytes: 1 << 20))
        #expect(script.take().contains(.place(length: 64 << 20)))
    }
}
