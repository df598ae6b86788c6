import Synchronization
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// What observers are told of what happens, and in which order, without network or disk.
@Suite("The engine's desk")
struct EngineStateTests {
    private static let reset = LeaseEnd.failed(DownloadError(.network, "reset", isTransient: true))

    // MARK: States

    @Test("A download is looked up, begun and running, and says from where to where")
    func begins() throws {
        var office = try EngineOffice()
        #expect(office.log.states() == [.probing])
        office.start()
        let events = office.log.take()
        #expect(events.first == .state(.running) && office.job.state == .running)
        guard case .started(let started)? = events.dropFirst().first else {
            Issue.record("nothing is said of the beginning: \(events)")
            return
        }
        #expect(started.url == "http://host/file0" && started.path == "file0" && started.validator == "ETag \"a\"")
        #expect(started.bytesTotal == EngineOffice.length && started.resumedFrom == 0 && started.isSegmented)
        guard case .segment(let change)? = events.last else {
            Issue.record("no segment is opened: \(events)")
            return
        }
        #expect(change.state == .opened && change.start == 0 && change.end == EngineOffice.length / 4)
        #expect(office.orders.count == 4 && office.job.progress.bytesTotal == EngineOffice.length)
    }

    @Test("What is odd about a file is noted")
    func notes() throws {
        for (change, isNoted) in [
            ({ $0.endsWithConnection = true }, true), ({ $0.contentEncoding = "gzip" }, true), ({ _ in }, false),
        ] as [((inout RemoteResource) -> Void, Bool)] {
            var office = try EngineOffice()
            office.tell(.surveyed(.nothing))
            var resource = WatchedPart.resource(EngineOffice.length)
            change(&resource)
            office.accept(0, resource: resource)
            _ = office.log.take()
            office.tell(.prepared())
            let notes = office.log.take().filter { if case .note = $0 { true } else { false } }
            #expect(notes.count == (isNoted ? 1 : 0))
        }
    }

    @Test("A download without a connection that waits for its next attempt is retrying, until that begins")
    func retries() throws {
        var office = try EngineOffice(segments: 2)
        office.start()
        office.accept(1)
        _ = office.log.take()
        office.now = .seconds(2)
        office.tell(.ended(LeaseID(1), Self.reset))
        #expect(office.log.states().isEmpty, "another goes on")
        office.tell(.ended(LeaseID(0), Self.reset))
        #expect(office.job.state == .retrying && office.log.states() == [.retrying])
        office.now += .seconds(60)
        office.tell(.tick)
        #expect(office.log.states() == [.running] && office.orders.count > 2)
    }

    @Test("One that has no answer yet is retrying, and then looked up again")
    func retriesProbing() throws {
        var office = try EngineOffice()
        office.tell(.surveyed(.nothing))
        _ = office.log.take()
        office.tell(.ended(LeaseID(0), Self.reset))
        #expect(office.job.state == .retrying)
        office.now += .seconds(60)
        office.tell(.tick)
        #expect(office.log.states() == [.retrying, .probing])
    }

    @Test("Paused and resumed it is queued or looked up again, and pauses that were asked for are taken back")
    func resumes() throws {
        var office = try EngineOffice()
        office.start()
        office.tell(.pause)
        for lease in 0..<4 { office.tell(.ended(LeaseID(lease), .revoked)) }
        office.tell(.checkpointed(bytes: 0))
        #expect(office.job.state == .paused && office.job.broadcaster.terminal != nil)
        #expect(office.log.take().last == .paused(office.job.progress))
        office.tell(.resume)
        #expect(office.job.broadcaster.terminal == nil)
        #expect(office.log.states().last == .probing)
    }

    // MARK: Progress

    @Test("Progress has the durable bytes of the last checkpoint")
    func durable() throws {
        var office = try EngineOffice()
        office.start()
        #expect(office.job.progress.bytesDurable == 0)
        office.bring(0, 1000)
        for tick in 1...2 {
            office.now = .milliseconds(100 * tick)
            office.tell(.tick)
        }
        office.tell(.pause)
        for lease in 0..<4 { office.tell(.ended(LeaseID(lease), .revoked)) }
        office.tell(.checkpointed(bytes: 700))
        #expect(office.job.progress.bytesDurable == 700)
        guard case .paused(let progress)? = office.log.take().last else {
            Issue.record("the download is not paused")
            return
        }
        #expect(progress.bytesDurable == 700)
    }

    @Test("Every second tick tells how much is there, over how many connections")
    func progress() throws {
        var office = try EngineOffice()
        office.start()
        office.accept(1)
        office.bring(0, 1000)
        office.bring(1, 500)
        _ = office.log.take()
        for tick in 1...6 {
            office.now = .milliseconds(100 * tick)
            office.tell(.tick)
            let events = office.log.take()
            guard tick % 2 == 0 else {
                #expect(events.isEmpty)
                continue
            }
            guard case .progress(let progress)? = events.first, events.count == 1 else {
                Issue.record("tick \(tick) says \(events)")
                continue
            }
            #expect(
                progress.bytesDone == 1500 && progress.bytesTotal == EngineOffice.length && progress.connections == 4)
            #expect(progress == office.job.progress)
        }
        #expect(office.job.progress.rate != nil)
    }

    @Test("Before the origin has answered there is no progress to tell")
    func noProgress() throws {
        var office = try EngineOffice()
        office.tell(.surveyed(.nothing))
        _ = office.log.take()
        for _ in 0..<4 { office.tell(.tick) }
        #expect(office.log.take().isEmpty)
    }

    @Test("What connections received is counted once they are over, and so are requests and the most at once")
    func counts() throws {
        var office = try EngineOffice()
        office.start()
        office.accept(1)
        office.bring(0, 1000)
        office.bring(1, 500)
        #expect(office.job.bytesFetched == 0)
        office.now = .seconds(2)
        office.tell(.ended(LeaseID(1), Self.reset))
        #expect(office.job.bytesFetched == 500)
        let result = office.job.result(try EngineOffice.file(), duration: .zero)
        #expect(result.connectionsPeak == 4 && result.requests == office.orders.count)
    }

    @Test("Each segment says where it stands, from which source, and what becomes of it")
    func segments() throws {
        var office = try EngineOffice()
        #expect(office.desk.segments(of: office.job, now: .zero).isEmpty)
        office.start()
        office.accept(1)
        office.bring(0, 1000)
        office.tell(.tick)
        let quarter = EngineOffice.length / 4
        office.tell(.ended(LeaseID(3), .failed(DownloadError(.server, "refused", isTransient: true))))
        let segments = office.desk.segments(of: office.job, now: .zero)
        #expect(segments.map(\.start) == (0..<4).map { $0 * quarter })
        #expect(segments.map(\.end) == (1...4).map { $0 * quarter })
        #expect(segments.map(\.position) == [1000, quarter, 2 * quarter, 3 * quarter])
        // The last request is for what the first response would reach by itself.
        #expect(segments.map(\.state) == [.fetching, .retrying, .fetching, .fetching])
        #expect(segments.map(\.source) == [0, nil, 0, 0])
        let later = office.desk.segments(of: office.job, now: .seconds(600))
        #expect(later.map(\.state) == [.fetching, .waiting, .fetching, .fetching])
    }

    // MARK: Ends

    @Test("How it ends is a state, and then the event that says so")
    func ends() throws {
        let failure = DownloadError(.server, "gone")
        for (conclusion, state) in [
            (.completed(try EngineOffice.file()), .completed),
            (.completed(try EngineOffice.file(wasThere: true)), .completed), (.failed(failure), .failed),
            (.paused, .paused),
            (.cancelled, .cancelled),
        ] as [(DownloadConclusion, DownloadState)] {
            var office = try EngineOffice()
            office.start()
            office.now = .seconds(5)
            _ = office.log.take()
            office.desk.conclude(office.job, conclusion, now: office.now)
            #expect(office.job.state == state)
            let events = office.log.take()
            #expect(events.first == .state(state) && events.count == 2)
            switch events.last {
            case .completed(let result)?:
                #expect(result.duration == .seconds(5))
                #expect(result.wasAlreadyComplete == (conclusion.file?.wasThere == true))
            case .failed(let error, let progress)?:
                #expect(error.message == failure.message && progress.connections == 0)
            case .paused(let progress)?: #expect(progress == office.job.progress && progress.connections == 0)
            case .cancelled?: #expect(conclusion == .cancelled)
            default: Issue.record("\(conclusion) is told as \(events)")
            }
            // Nothing more is told of it.
            office.tell(.tick)
            office.tell(.tick)
            #expect(office.log.take().isEmpty)
        }
    }

    @Test("A restart forgets what was done, and what is retried, checkpointed or learnt is told")
    func reports() throws {
        var office = try EngineOffice()
        office.start()
        _ = office.log.take()
        let failure = DownloadError(.server, "busy")
        office.desk.publish(.retrying(failure, attempt: 2, delay: .seconds(3)), of: office.job)
        office.desk.publish(.checkpointed(bytes: 77), of: office.job)
        office.desk.publish(.note("a note"), of: office.job)
        office.desk.publish(.connectionCountFound(6), of: office.job)
        #expect(
            office.log.take() == [
                .retrying(failure, attempt: 2, delay: .seconds(3)), .checkpoint(bytesDurable: 77),
                .note("a note"),
            ])
        #expect(office.job.connectionCountFound == 6)
        office.desk.publish(.restarted("another tag"), of: office.job)
        guard case .note(let text)? = office.log.take().first else {
            Issue.record("the restart is not told")
            return
        }
        #expect(text.contains("another tag"))
        // A part that is to be set aside is told of once it is.
        office.desk.publish(.setAside("another byte"), of: office.job)
        let difference = office.job.shared.withLock { $0.partDifference }
        #expect(office.log.take().isEmpty && difference == "another byte")
        #expect(office.job.progress.bytesDone == 0 && office.job.progress.bytesTotal == nil)
    }

    @Test("Segments that are split, done or fetched again are told as such, with their source where one is concerned")
    func segmentReports() throws {
        let office = try EngineOffice()
        var desk = office.desk
        let id = Segment.ID(3)
        for (report, state, hasSource) in [
            (.segmentSplit(id, 5..<10), .split, false), (.segmentDone(id, 5..<10, .first), .done, true),
            (.segmentRetry(id, 5..<10, .first), .retry, true), (.segmentOpened(id, 5..<10, .first), .opened, true),
        ] as [(DownloadReport, DownloadEvent.SegmentChange.State, Bool)] {
            _ = office.log.take()
            desk.publish(report, of: office.job)
            #expect(
                office.log.take() == [
                    .segment(
                        .init(
                            segment: 3, start: 5, end: 10, state: state,
                            source: hasSource ? "http://host/file0" : nil))
                ])
        }
        desk.publish(.segmentSplit(id, 5..<Int64.max), of: office.job)
        guard case .segment(let change)? = office.log.take().first else {
            Issue.record("nothing is told")
            return
        }
        #expect(change.end == nil)
    }

    // MARK: Many downloads

    @Test("A download that is forgotten takes no other's place with it")
    func forgets() throws {
        var desk = EngineState(machine: GroupStateMachine(limits: .init()), seed: 1)
        let jobs = try (0..<5).map { try EngineOffice.job($0) }
        for job in jobs {
            for case .download(let id, .survey) in desk.handle(.add(job), now: .zero) {
                if let job = desk.job(id) { desk.noteStart(of: job, now: .zero) }
            }
        }
        for gone in [1, 0, 4] {
            for case .download(let id, .conclude(let conclusion)) in desk.handle(
                .event(DownloadID(gone), .storageFailed(DownloadError(.file, "enough"))), now: .zero)
            {
                if let job = desk.job(id) { desk.conclude(job, conclusion, now: .zero) }
            }
            _ = desk.handle(.remove(DownloadID(gone)), now: .zero)
            #expect(desk.job(DownloadID(gone)) == nil)
        }
        #expect((0..<5).map { desk.job(DownloadID($0))?.id.rawValue } == [nil, nil, 2, 3, nil])
        // One that has not come to rest is kept.
        _ = desk.handle(.remove(DownloadID(2)), now: .zero)
        #expect(desk.job(DownloadID(2)) === jobs[2])
        for number in [2, 3] {
            for case .fetch(let id, let order) in desk.handle(
                .event(DownloadID(number), .surveyed(.nothing)), now: .zero)
            {
                _ = desk.open(order, of: id)
                #expect(id == DownloadID(number) && desk.lease(order.lease, of: id) != nil)
            }
        }
        #expect(desk.lease(LeaseID(0), of: DownloadID(1)) == nil)
        _ = desk.handle(.close, now: .zero)
        #expect(!desk.isFinished)
        desk.finishAll()
        #expect(jobs[2].broadcaster.terminal != nil && jobs[3].broadcaster.terminal != nil)
    }

    @Test("A desk that is closed is finished once all rest, and not before it is closed")
    func finished() throws {
        var office = try EngineOffice()
        #expect(!office.desk.isFinished)
        office.tell(.storageFailed(DownloadError(.file, "enough")))
        #expect(!office.desk.isFinished)
        office.tell(.close)
        #expect(office.desk.isFinished)
    }

    @Test("Steps on one manifest follow each other in the order they were asked for")
    func steps() throws {
        var desk = try EngineOffice().desk
        let id = DownloadID(0)
        let (first, second) = (
            EngineState.ManifestStep.checkpoint(isPause: false), EngineState.ManifestStep.checkpoint(isPause: true)
        )
        let begins = [desk.begin(first, of: id), desk.begin(second, of: id), desk.begin(first, of: id)]
        #expect(begins == [true, false, false])
        let next = [desk.endStep(of: id), desk.endStep(of: id), desk.endStep(of: id), desk.endStep(of: id)]
        #expect(next == [second, first, nil, nil])
        let isFree = desk.begin(second, of: id)
        #expect(isFree)
        let isNobodys = desk.begin(first, of: DownloadID(9))
        let none = desk.endStep(of: DownloadID(9))
        #expect(!isNobodys && none == nil)
    }
}
