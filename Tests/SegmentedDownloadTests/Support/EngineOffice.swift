import HTTPTypes
import Synchronization
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadCore

/// An engine's state without network or disk, the fetches it ordered, and one file of 64 MiB.
struct EngineOffice {
    /// A transport that is not used.
    struct NoTransport: HTTPTransport {
        func withResponse<Answer: Sendable>(
            to request: TransportRequest, _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
        ) async throws -> Answer {
            throw DownloadError(.internal, "no request is made here")
        }

        func limit(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {}
    }

    /// What observers of one download were sent.
    final class Log: Sendable {
        private let events = Mutex<[DownloadEvent]>([])

        init(_ job: DownloadJob) {
            job.broadcaster.relay { signal in
                guard case .happened(let event) = signal else { return }
                self.events.withLock { $0.append(event) }
            }
        }

        func take() -> [DownloadEvent] {
            self.events.withLock { events in
                defer { events = [] }
                return events
            }
        }

        /// The states since the last look.
        func states() -> [DownloadState] {
            self.take().compactMap { if case .state(let state) = $0 { state } else { nil } }
        }
    }

    static let length: Int64 = 64 << 20

    var desk = EngineState(machine: GroupStateMachine(limits: .init()), seed: 1)
    var now: Duration = .zero
    var orders: [FetchOrder] = []
    var leases: [LeaseID: SegmentLease] = [:]
    var actions: [DownloadAction] = []
    let job: DownloadJob
    let log: Log

    init(segments: Int = 4, _ change: (inout DownloadRequest) -> Void = { _ in }) throws {
        self.job = try Self.job(0, segments: segments, change)
        self.log = Log(self.job)
        self.tell(.add(self.job))
    }

    static func job(
        _ number: Int, segments: Int = 4, _ change: (inout DownloadRequest) -> Void = { _ in }
    ) throws -> DownloadJob {
        var request = DownloadRequest(
            try SourceURL("http://user:word@host/file\(number)"), to: .file("file\(number)"))
        request.segments = .exactly(segments)
        change(&request)
        let followers = request.sources.map {
            RedirectFollower(source: $0, fields: [:], access: Access(), transport: NoTransport())
        }
        return DownloadJob(
            id: DownloadID(number), request: request, followers: followers, storage: StreamStorage(),
            placed: PlacedFiles())
    }

    /// Hands a message to the state, and does what the engine would do about it.
    mutating func tell(_ message: DownloadEngine.Message) {
        for action in self.desk.handle(message, now: self.now) {
            switch action {
            case .fetch(let id, let order):
                self.orders.append(order)
                self.leases[order.lease] = self.desk.open(order, of: id)
            case .download(let id, .report(let report)):
                if let job = self.desk.job(id) { self.desk.publish(report, of: job) }
            case .download(let id, .conclude(let conclusion)):
                if let job = self.desk.job(id) { self.desk.conclude(job, conclusion, now: self.now) }
            case .download(let id, .survey):
                if let job = self.desk.job(id) { self.desk.noteStart(of: job, now: self.now) }
            case .download(_, .answer(let lease, let decision)): self.leases[lease]?.answer(decision)
            case .download(_, let action): self.actions.append(action)
            case .post: break
            }
        }
    }

    mutating func tell(_ event: MachineEvent) { self.tell(.event(self.job.id, event)) }

    /// A request is answered with what it asks for.
    mutating func accept(_ lease: Int, resource: RemoteResource = WatchedPart.resource(Self.length)) {
        guard let order = self.orders.first(where: { $0.lease == LeaseID(lease) }) else { return }
        let range = ByteRange(order.request.lowerBound..<(order.request.upperBound ?? Self.length))
        self.tell(.responded(order.lease, .partial(range, resource), suggestedName: nil))
    }

    /// Brings it to where its first connections run.
    mutating func start() {
        self.tell(.surveyed(.nothing))
        self.accept(0)
        self.tell(.prepared())
    }

    /// A connection receives and writes so many bytes.
    func bring(_ lease: Int, _ count: Int) {
        guard let lease = self.leases[LeaseID(lease)] else { return }
        lease.received(count)
        #expect(lease.reserve(count) == count)
        lease.commit()
    }
}

extension EngineOffice {
    /// A complete file without content.
    static func file(wasThere: Bool = false) throws -> VerifiedFile {
        let resource = RemoteResource(completeLength: nil)
        return try VerifiedFile.judged(
            .init(length: 0), for: .init(), by: wasThere ? .kept : .received(resource, .validator))
    }
}
