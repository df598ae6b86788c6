import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// What waits while the part of a download that has come to rest is closed.
@Suite("Downloads whose part is being closed")
struct ClosingJobsTests {
    private static func events(_ messages: [DownloadEngine.Message]) -> [MachineEvent?] {
        messages.map { message in
            if case .event(_, let event) = message { return event }
            if case .ask(_, let event, _) = message { return event }
            return nil
        }
    }

    @Test("Messages to such a download wait in their order, and no others do")
    func messages() throws {
        var closing = ClosingJobs()
        let jobs = try (0..<2).map { try EngineOffice.job($0) }
        let first: [DownloadEngine.Message] = [
            .ask(jobs[0], .pause, ticket: 1), .event(jobs[0].id, .resume), .remove(jobs[0].id),
        ]
        for message in first {
            let isHeld = closing.hold(message)
            #expect(!isHeld, "nothing is being closed")
        }
        closing.begin(jobs[0].id)
        for message in first {
            let isHeld = closing.hold(message)
            #expect(isHeld)
        }
        for message in [.event(jobs[1].id, .resume), .tick, .close, .add(jobs[1])] as [DownloadEngine.Message] {
            let isHeld = closing.hold(message)
            #expect(!isHeld)
        }
        let released = closing.end(jobs[0].id)
        #expect(Self.events(released.messages) == [.pause, .resume, nil] && released.surveys.isEmpty)
        let isHeld = closing.hold(first[0])
        #expect(!isHeld && closing.isEmpty)
    }

    @Test("No destination is surveyed while any part is being closed, and each is afterwards")
    func surveys() throws {
        var closing = ClosingJobs()
        let jobs = try (0..<4).map { try EngineOffice.job($0) }
        var isHeld = closing.hold(surveyOf: jobs[2])
        #expect(!isHeld)
        closing.begin(jobs[0].id)
        closing.begin(jobs[1].id)
        for job in jobs[2...] {
            isHeld = closing.hold(surveyOf: job)
            #expect(isHeld)
        }
        let early = closing.end(jobs[1].id).surveys
        #expect(early.isEmpty && !closing.isEmpty)
        let late = closing.end(jobs[0].id).surveys
        #expect(late.map(\.id) == jobs[2...].map(\.id))
        isHeld = closing.hold(surveyOf: jobs[2])
        #expect(!isHeld)
    }

    @Test("An engine that is closed goes on until every part is closed")
    func unfinished() throws {
        var office = try EngineOffice()
        office.tell(.storageFailed(DownloadError(.file, "enough")))
        office.tell(.close)
        office.desk.closing.begin(office.job.id)
        #expect(!office.desk.isFinished)
        _ = office.desk.closing.end(office.job.id)
        #expect(office.desk.isFinished)
    }
}
