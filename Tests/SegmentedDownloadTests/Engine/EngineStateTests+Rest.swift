import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// Adjustments of running downloads, and the state of downloads that came to rest or were removed.
extension EngineStateTests {
    @Test("An adjustment is decided by the bytes that have arrived by then")
    func adjusts() throws {
        var office = try EngineOffice()
        office.start()
        for lease in 1..<4 { office.accept(lease) }
        office.bring(0, Int(EngineOffice.length / 4) - 1000)
        office.now = .seconds(1)
        office.actions = []
        office.tell(.adjust(.segments(office.job.id, .exactly(3))))
        // The connection with 1000 bytes left ends by itself, so none is closed.
        #expect(office.actions.isEmpty)
    }

    @Test("A download that takes the place of a removed one is timed from its own start")
    func timesAfterRemoval() throws {
        var office = try EngineOffice()
        for number in 1...2 { office.tell(.add(try EngineOffice.job(number))) }
        // The entry of the last one moves to the place of the first.
        office.tell(.storageFailed(DownloadError(.file, "enough")))
        office.tell(.remove(office.job.id))
        let job = try EngineOffice.job(3)
        let log = EngineOffice.Log(job)
        office.now = .seconds(5)
        office.tell(.add(job))
        office.desk.conclude(job, .completed(try EngineOffice.file()), now: .seconds(8))
        guard case .completed(let result)? = log.take().last else {
            Issue.record("its end is not told")
            return
        }
        #expect(result.duration == .seconds(3))
    }

    @Test("A step on the manifest that was under way at the end does not delay the steps of the next run")
    func stepsAfterEnd() throws {
        var office = try EngineOffice()
        office.start()
        let step = EngineState.ManifestStep.checkpoint(isPause: false)
        let begins = office.desk.begin(step, of: office.job.id)
        office.desk.conclude(office.job, .failed(DownloadError(.file, "enough")), now: .zero)
        let beginsAgain = office.desk.begin(step, of: office.job.id)
        #expect(begins && beginsAgain)
    }

    @Test("A file whose length the server did not state has a total once it is complete")
    func totalAtEnd() async throws {
        try await withTemporaryDirectory { directory in
            let disk = WatchedStorage()
            let request = DownloadRequest(try SourceURL("http://host/file.bin"), to: .file(directory + "/file.bin"))
            let job = DownloadJob(
                id: DownloadID(0), request: request, followers: [], storage: disk, placed: PlacedFiles())
            var desk = EngineState(machine: GroupStateMachine(limits: .init()), seed: 1)
            _ = desk.handle(.add(job), now: .zero)
            _ = try await job.survey()
            let preparation = WatchedJob.preparation(of: RemoteResource(completeLength: nil))
            _ = try await job.prepare(preparation, id: 7)
            let part = try #require(job.part)
            try WatchedPart(disk: disk, paths: part.paths, part: part).fill(0..<100)
            let file = try await job.place(length: 100, evidence: .validator)
            #expect(job.progress.bytesTotal == nil)
            desk.conclude(job, .completed(file), now: .zero)
            #expect(job.progress.bytesDone == 100 && job.progress.bytesTotal == 100)
        }
    }

    @Test("A resumed download that sends its first request again is probing, not running")
    func probesAgain() throws {
        var office = try EngineOffice(segments: 1)
        office.start()
        #expect(office.job.state == .running)
        office.desk.conclude(office.job, .failed(DownloadError(.file, "enough")), now: .zero)
        office.job.update(state: .retrying)
        _ = office.desk.open(office.orders[0], of: office.job.id)
        #expect(office.job.state == .probing)
    }
}
