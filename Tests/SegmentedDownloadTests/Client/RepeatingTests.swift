import Foundation
import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

/// Questions that are asked again, and how long a client waits before it asks.
@Suite("Repeated questions")
struct RepeatingTests {
    private struct Outcome {
        var answer: Int?
        var error: DownloadError?
        var notes: [(attempt: Int, delay: Duration)] = []
        var calls = 0
        var sleeps: [Duration] = []
    }

    /// Asks until the errors are used up.
    private static func outcome(
        _ errors: [DownloadError], tasks: Int = 1, _ change: (inout DownloadRequest) -> Void = { _ in }
    ) async throws -> Outcome {
        let clock = StepClock()
        var configuration = DownloadConfiguration()
        configuration.limits.tasks = tasks
        let client = DownloadClient(
            configuration: configuration, transport: EngineOffice.NoTransport(), storage: StreamStorage(),
            clock: clock, seed: 1)
        var request = DownloadRequest(try SourceURL("http://host/file"))
        change(&request)
        var outcome = Outcome()
        do throws(DownloadError) {
            outcome.answer = try await client.repeating(request) { error, attempt, delay in
                #expect(error == errors[attempt - 1])
                outcome.notes.append((attempt, delay))
            } _: { () throws(DownloadError) -> Int in
                outcome.calls += 1
                guard outcome.calls > errors.count else { throw errors[outcome.calls - 1] }
                return 7
            }
        } catch {
            outcome.error = error
        }
        outcome.sleeps = clock.sleeps
        let announced = outcome.notes.map { $0.delay }
        #expect(announced == outcome.sleeps)
        return outcome
    }

    private static func refusal(_ retryAfter: Duration? = nil) -> DownloadError {
        DownloadError(.server, "busy", status: 503, retryAfter: retryAfter)
    }

    @Test(
        "A failure that may pass is reported, and the question is asked again after the wait that the server asks for")
    func again() async throws {
        let outcome = try await Self.outcome([Self.refusal(.seconds(600)), Self.refusal(.seconds(20)), Self.refusal()])
        #expect(outcome.answer == 7 && outcome.calls == 4)
        #expect(outcome.sleeps.count == 3 && outcome.sleeps.prefix(2) == [.seconds(600), .seconds(20)])
        let last = try #require(outcome.sleeps.last)
        #expect(last < .seconds(2), "the third delay has a bound of 2 s")
    }

    @Test(
        "A failure that cannot pass ends it at once, and so does one with a longer wait than a download accepts",
        arguments: [
            DownloadError(.server, "gone", status: 410), DownloadError(.integrity, "other"),
            DownloadError(.server, "busy", status: 503, retryAfter: .seconds(601)),
            DownloadError(.server, "busy", status: 503, retryAfter: .seconds(RetryAfter.secondsMax)),
        ])
    func never(error: DownloadError) async throws {
        let outcome = try await Self.outcome([error])
        #expect(outcome.error == error && outcome.calls == 1 && outcome.notes.isEmpty && outcome.sleeps.isEmpty)
    }

    @Test("The number of attempts is that of a download: fewer until the host has answered, and as many as requested")
    func attempts() async throws {
        let refusals = Array(repeating: Self.refusal(), count: 100)
        let refused = try await Self.outcome(refusals)
        #expect(refused.calls == 11)
        let requested = try await Self.outcome(refusals) { $0.retries = 2 }
        #expect(requested.calls == 3)
        let silent = Array(repeating: DownloadError(.network, "no connection"), count: 100)
        let unreached = try await Self.outcome(silent)
        #expect(unreached.calls == 4)
        let reached = try await Self.outcome([Self.refusal()] + silent)
        #expect(reached.calls == 11)
        // A task of a job has patience for 10 min.
        let ofJob = try await Self.outcome(refusals, tasks: 8) { $0.retryDelay = .seconds(30) }
        #expect(ofJob.calls == 21 && Set(ofJob.sleeps) == [.seconds(30)])
    }

    @Test("A fixed delay applies, but not before the server's")
    func fixed() async throws {
        let outcome = try await Self.outcome([Self.refusal(.seconds(9)), Self.refusal()]) {
            $0.retryDelay = .seconds(3)
        }
        #expect(outcome.answer == 7 && outcome.sleeps == [.seconds(9), .seconds(3)])
    }

    // MARK: Before a question

    @Test("A client waits as a host has asked other processes, but not again and again")
    func awaitsHost() async throws {
        try await TestPlaces.take(.locks) {
            let directory = "/dev/shm/segdl-test-\(UUID().uuidString)"
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            defer { try? FileManager.default.removeItem(atPath: directory) }
            let open = { NoticeFile(in: directory, "segdl", isOwn: true, bootID: "boot") }
            let other = NoticeBoard(try #require(open()))
            let refuse = { @Sendable (time: Duration) in
                other.post(HostNotice(.refusal, host: HostKey("host"), until: time), now: .zero)
            }
            refuse(.seconds(400))
            // Another process is refused again meanwhile.
            let clock = StepClock { refuse(.seconds(500)) }
            let client = DownloadClient(
                configuration: DownloadConfiguration(), transport: EngineOffice.NoTransport(),
                storage: StreamStorage(), clock: clock, seed: 1, threads: .inherited, memory: nil,
                notices: open(), servers: nil)
            let request = DownloadRequest(try SourceURL("http://host/file"))
            do throws(DownloadError) {
                _ = try await client.probe(request)
                Issue.record("it was asked")
            } catch {
                #expect(error.code == .server && error.isTransient)
                #expect(error.message == "host has asked other processes to wait again and again")
                let asked = error.retryAfter ?? .zero
                #expect(asked > .seconds(400) && asked <= .seconds(500))
            }
            #expect(clock.sleeps.count == 1)
        }
    }
}
