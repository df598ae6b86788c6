import SegmentedDownloadCore

/// The downloads of a group in the order they were added, indexed by name, by source and by target.
///
/// Every lookup takes constant time.
struct DownloadRegistry {
    /// The URL and destination of a download. A request with the target of a download is that download if this one does all that
    /// the request asks for, unless they go to a FIFO or a device, which may get the same file twice.
    private struct Target: Hashable {
        let source: String
        let destination: DownloadRequest.Destination
        /// The id, if the destination's name template uses it.
        let id: Download.ID?
        /// The consumer of a stream. Two streams are never the same download.
        let stream: ObjectIdentifier?

        /// Nil for a FIFO or a device.
        init?(_ request: DownloadRequest, _ stream: ByteStream?) {
            if case .stream = request.destination { return nil }
            self.source = request.source.string
            self.destination = request.destination.normalized
            let usesID = if case .directory(_, let name?) = self.destination { name.usesID } else { false }
            self.id = usesID ? request.id : nil
            self.stream = stream.map { ObjectIdentifier($0) }
        }

        init?(_ job: DownloadJob) { self.init(job.request, job.stream) }
    }

    /// In order of addition. A removal leaves a gap; the gaps are closed when they outnumber the downloads.
    private var slots: [DownloadJob?] = []
    private var positions: [DownloadID: Int] = [:]
    private var names: [Download.ID: DownloadJob] = [:]
    private var targets: [Target: [DownloadJob]] = [:]
    private var sources: [String: [DownloadJob]] = [:]
    private var numberNext = 0

    var jobs: [DownloadJob] { self.slots.compactMap { $0 } }
    var count: Int { self.positions.count }

    func job(_ name: Download.ID) -> DownloadJob? { self.names[name] }

    /// All downloads of a source, oldest first.
    func jobs(_ source: SourceURL) -> [DownloadJob] { self.sources[source.string] ?? [] }

    /// The download that is not over and has the request's id, or has its target and stream and does all that it asks for.
    ///
    /// - Parameter selection: What the request selects the representation with, besides its URL.
    func job(
        _ request: DownloadRequest, _ selection: RequestSelection.Values = [:], stream: ByteStream? = nil
    ) -> DownloadJob? {
        if let id = request.id, let job = self.names[id], !job.state.isOver { return job }
        let content = RequestedContent(request, selection)
        return Target(request, stream).flatMap { self.targets[$0] }?
            .first { !$0.state.isOver && $0.content.covers(content) }
    }

    /// A number that is not in use as a name.
    mutating func number() -> DownloadID {
        while self.names[Download.ID(rawValue: "\(self.numberNext)")] != nil { self.numberNext += 1 }
        defer { self.numberNext += 1 }
        return DownloadID(self.numberNext)
    }

    /// Adds a job and removes those that are over and have its name or its target.
    ///
    /// - Returns: The jobs that were removed.
    mutating func add(_ job: DownloadJob) -> [DownloadJob] {
        var replaced: [DownloadJob] = []
        let target = Target(job)
        let sameTarget = (target.flatMap { self.targets[$0] } ?? [])
            .filter { $0.state.isOver || $0.content == job.content }
        for old in [self.names[job.name]].compactMap({ $0 }) + sameTarget where self.remove(old) {
            replaced.append(old)
        }
        self.positions[job.id] = self.slots.count
        self.slots.append(job)
        self.names[job.name] = job
        if let target { self.targets[target, default: []].append(job) }
        self.sources[job.request.source.string, default: []].append(job)
        return replaced
    }

    /// Removes a job.
    ///
    /// - Returns: Whether the job was registered.
    @discardableResult
    mutating func remove(_ job: DownloadJob) -> Bool {
        guard let position = self.positions.removeValue(forKey: job.id) else { return false }
        self.slots[position] = nil
        if self.names[job.name] === job { self.names[job.name] = nil }
        if let target = Target(job) {
            self.targets[target]?.removeAll { $0 === job }
            if self.targets[target]?.isEmpty == true { self.targets[target] = nil }
        }
        let source = job.request.source.string
        self.sources[source]?.removeAll { $0 === job }
        if self.sources[source]?.isEmpty == true { self.sources[source] = nil }
        if self.slots.count > 2 * self.positions.count + 16 { self.closeGaps() }
        return true
    }

    private mutating func closeGaps() {
        self.slots.removeAll { $0 == nil }
        for (position, job) in self.slots.enumerated() {
            if let job { self.positions[job.id] = position }
        }
    }
}
