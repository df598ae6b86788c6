import HTTPTypes
import SegmentedDownloadCore
import Testing

/// One download whose events a test sends one by one, in its own order.
struct Script {
    static let id = DownloadID(0)
    static let mebibyte: Int64 = 1 << 20

    private(set) var machine: GroupStateMachine
    private(set) var now: Duration = .zero
    /// The actions since the last ``take()``.
    private var actions: [GroupAction] = []
    /// The requests that are out, in the order made.
    private(set) var orders: [FetchOrder] = []
    private var notes: [String] = []
    private var observations: [LeaseID: LeaseObservation] = [:]

    init(
        _ segments: DownloadOptions.Segments = .exactly(1), limits: GroupStateMachine.Limits = .init(),
        _ change: (inout DownloadSettings) -> Void = { _ in }
    ) {
        var settings = DownloadSettings()
        settings.segments = segments
        settings.host = "host"
        change(&settings)
        self.machine = GroupStateMachine(limits: limits)
        self.handle(.added(Self.id, settings, seed: 1))
    }

    /// A download whose first response, `bytes 0-`, was accepted and whose part file is ready.
    static func fetching(
        _ segments: DownloadOptions.Segments, length: Int64, limits: GroupStateMachine.Limits = .init(),
        _ change: (inout DownloadSettings) -> Void = { _ in }
    ) -> Script {
        var script = Script(segments, limits: limits, change)
        script.tell(.surveyed(.nothing))
        script.accept(0, RemoteResource.tagged("\"a\"", length: length))
        script.tell(.prepared())
        return script
    }

    // MARK: Events

    mutating func tell(_ event: MachineEvent) {
        if case .ended(let lease, _) = event {
            self.orders.removeAll { $0.lease == lease }
        }
        self.handle(.download(Self.id, event))
        if case .ended(let lease, _) = event { self.observations[lease] = nil }
    }

    mutating func handle(_ event: GroupEvent) {
        let ordered = self.machine.handle(event, now: self.now)
        self.actions += ordered
        for case .download(_, .report(.note(let note))) in ordered { self.notes.append(note) }
        for case .fetch(let id, let order) in ordered where id == Self.id { self.orders.append(order) }
        for case .download(Self.id, .narrow(let lease, let limit)) in ordered { self.tell(.narrowed(lease, to: limit)) }
    }

    /// Advances the time, with a tick at its end.
    mutating func wait(_ time: Duration) {
        self.now += time
        self.handle(.tick)
    }

    /// The lease has written up to `position`, and received as much.
    mutating func progress(_ lease: Int, to position: Int64) {
        let from = self.order(lease)?.request.lowerBound ?? 0
        self.progress(lease, to: position, received: position - from)
    }

    mutating func progress(_ lease: Int, to position: Int64, received: Int64) {
        self.observations[LeaseID(lease)] = LeaseObservation(
            lease: LeaseID(lease), position: position, bytesReceived: received, isWriting: false)
        self.machine.observe(
            Self.id, self.observations.values.sorted { $0.lease < $1.lease }, now: self.now)
    }

    mutating func note(_ observations: [LeaseObservation]) {
        self.machine.observe(Self.id, observations, now: self.now)
    }

    /// Answers a lease's request with exactly the requested range.
    mutating func accept(_ lease: Int, _ resource: RemoteResource) {
        guard let request = self.order(lease)?.request, let length = resource.completeLength else { return }
        let range = ByteRange(request.lowerBound..<(request.upperBound ?? length))
        self.respond(lease, .partial(range, resource))
    }

    mutating func respond(_ lease: Int, _ response: RangeResponse) {
        self.tell(.responded(LeaseID(lease), response, suggestedName: nil))
    }

    mutating func end(_ lease: Int, _ end: LeaseEnd) {
        self.tell(.ended(LeaseID(lease), end))
    }

    /// Writes all bytes of a lease's request and ends it.
    mutating func complete(_ lease: Int) {
        guard let order = self.order(lease), let plan = self.plan, let segment = plan[order.segment] else { return }
        self.progress(lease, to: segment.upperBound)
        self.end(lease, .finished)
    }

    /// Answers every comparison with another validator, until the download treats it as a change.
    mutating func disagree(_ difference: String) {
        self.answerComparisons { $0.respond($1, .changed(difference)) }
    }

    /// Answers every comparison in the same way, while requests are repeated.
    mutating func answerComparisons(_ answer: (inout Script, Int) -> Void) {
        for _ in 0..<Self.repetitionsMax {
            if self.orders.isEmpty { self.wait(.seconds(1)) }
            guard self.conclusion == nil, let order = self.orders.last, order.request.identity != nil else { return }
            answer(&self, order.lease.rawValue)
            if self.order(order.lease.rawValue) != nil { self.end(order.lease.rawValue, .stopped) }
            self.wait(.seconds(1))
        }
    }

    /// Answers every checkpoint since the last ``take()``.
    mutating func answerCheckpoints() {
        for case .checkpoint in self.take() { self.tell(.checkpointed(bytes: 0)) }
    }

    /// More than the number of tolerated disagreements.
    private static let repetitionsMax = 1000

    /// Answers a sample: its bytes agree with those on disk.
    mutating func agree(_ sample: Int, _ resource: RemoteResource) {
        guard let request = self.order(sample)?.request, let end = request.upperBound else { return }
        self.accept(sample, resource)
        self.progress(sample, to: end, received: end - request.lowerBound)
        self.end(sample, .finished)
    }

    /// Answers the request that asks whether the complete file is still the same.
    mutating func confirm(_ resource: RemoteResource) throws {
        let order = try #require(self.orders.last)
        try #require(order.isSample && order.request.lowerBound + 1 == resource.completeLength)
        self.agree(order.lease.rawValue, resource)
    }

    // MARK: State

    func order(_ lease: Int) -> FetchOrder? { self.orders.first { $0.lease == LeaseID(lease) } }

    var plan: SegmentPlan? { self.machine.machine(Self.id)?.plan }
    var conclusion: DownloadConclusion? { self.machine.machine(Self.id)?.conclusion }
    var isCompleted: Bool { self.conclusion?.file?.wasThere == false }
    var isAlreadyComplete: Bool { self.conclusion?.file?.wasThere == true }
    /// The notes that contain this text, in order.
    func reports(_ text: String) -> [String] { self.notes.filter { $0.contains(text) } }

    var leases: [Int] { self.orders.map(\.lease.rawValue) }

    var failure: DownloadError? {
        guard case .failed(let failure) = self.conclusion else { return nil }
        return failure
    }

    /// The actions since the last call, without reports and requests.
    mutating func take() -> [DownloadAction] {
        defer { self.actions = [] }
        return self.actions.compactMap {
            switch $0 {
            case .fetch, .post, .download(_, .report): nil
            case .download(_, let action): action
            }
        }
    }

    /// The preparation among the actions since the last ``take()``, which are taken.
    mutating func takePreparation() -> Preparation? {
        self.take().compactMap { if case .prepare(let preparation) = $0 { preparation } else { nil } }.first
    }
}

extension RemoteResource {
    static func tagged(_ tag: String, length: Int64?) -> RemoteResource {
        RemoteResource(
            completeLength: length, validator: Validator(entityTag: EntityTag(fieldValue: tag), lastModified: nil))
    }
}

extension DownloadAction {
    var isPlace: Bool { if case .place = self { true } else { false } }
    var isPrepare: Bool { if case .prepare = self { true } else { false } }
    var isRevoke: Bool { if case .revoke = self { true } else { false } }
    var revoked: LeaseID? { if case .revoke(let lease) = self { lease } else { nil } }
}

extension Script {
    /// The file is in place.
    mutating func tellPlaced() {
        guard
            let file = try? VerifiedFile.judged(
                .init(length: 0), for: .init(), by: .received(RemoteResource(completeLength: nil), .validator))
        else { return }
        self.tell(.placed(file))
    }
}

extension ExistingFile {
    /// - Parameter agreesWithDigests: Whether the file has the digest that is required; nil if none is.
    init(length: Int64, record: RemoteResource?, agreesWithDigests: Bool?, modified: HTTPDate? = nil) {
        let zeros = String(repeating: "0", count: 8)
        let required = ExpectedDigest(.crc32, hex: agreesWithDigests == true ? zeros : "00000001")
        self.init(
            VerifiedFile.Content(length: length, hexes: [.crc32: zeros]),
            for: .init(digests: agreesWithDigests == nil ? [] : required.map { [$0] } ?? []), record: record,
            modified: modified)
    }
}
