/// A contradiction: a byte from one source differs from the byte on disk.
struct Dispute: Hashable, Sendable {
    let differingSource: SourceID
    let offset: Int64
    /// The byte that the differing source sent.
    let byte: UInt8
    /// The request that asks a third source.
    fileprivate(set) var lease: LeaseID?
    /// How many answers of arbiters ended before the byte.
    fileprivate(set) var attempts = 0

    init(differingSource: SourceID, offset: Int64, byte: UInt8) {
        self.differingSource = differingSource
        self.offset = offset
        self.byte = byte
    }
}

/// Undecided contradictions between sources, oldest first.
///
/// A contradiction is kept until it is decided or its byte is withdrawn. They are decided one at a time, because the
/// first decision often settles later ones. So only the first one is ever asked about.
struct Disputes: Hashable, Sendable {
    /// 10: an arbiter that sends something each time has no consecutive failures that would end it.
    static let arbitrationsMax = 10

    private(set) var open: [Dispute] = []

    var isEmpty: Bool { self.open.isEmpty }

    /// The contradiction to decide next. Absent while a third source is being asked about it.
    var next: Dispute? { self.open.first.flatMap { $0.lease == nil ? $0 : nil } }

    /// Whether a source has contradicted bytes on disk.
    func contains(differingSource source: SourceID) -> Bool { self.open.contains { $0.differingSource == source } }

    mutating func add(_ dispute: Dispute) { self.open.append(dispute) }

    // MARK: Asking

    /// Records the request that asks a third source about the first contradiction.
    mutating func ask(_ lease: LeaseID) { self.open[0].lease = lease }

    /// The contradiction that a request asks about.
    func asked(by lease: LeaseID) -> Dispute? { self.open.first.flatMap { $0.lease == lease ? $0 : nil } }

    /// Ignores the answer that is awaited.
    mutating func cancel() {
        if !self.open.isEmpty { self.open[0].lease = nil }
    }

    /// Records that a request ended without an answer.
    ///
    /// - Parameter isAttempt: Whether the arbiter sent something.
    mutating func noteUnanswered(isAttempt: Bool) {
        self.open[0].lease = nil
        if isAttempt { self.open[0].attempts += 1 }
    }

    // MARK: Ending

    /// Removes the first contradiction, which is decided.
    mutating func removeFirst() { self.open.removeFirst() }

    /// Removes contradictions of bytes in a range.
    mutating func remove(in range: Range<Int64>) { self.open.removeAll { range.contains($0.offset) } }

    /// Removes all.
    mutating func removeAll() { self.open = [] }

    /// The contradictions that still apply. One that is being asked about is kept until the answer.
    func filter(_ stands: (Dispute) -> Bool) -> Disputes {
        var disputes = self
        disputes.open = self.open.filter { $0.lease != nil || stands($0) }
        return disputes
    }
}
