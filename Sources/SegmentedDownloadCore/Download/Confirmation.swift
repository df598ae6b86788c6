/// The last requests of a download, which show whether the file changed while its last bytes were being sent.
///
/// A server identifies the version in the head of a response. If the file is then overwritten in place, the rest of the
/// body is from the new version, under the validator of the old one. An answer proves the bytes that arrived before its
/// request; the last bytes of each source need a request of their own.
struct Confirmation: Hashable, Sendable {
    /// 1 s: short files take no second request. A change within this time after a head is not noticed, unless many bytes
    /// arrived.
    static let exposureMax: Duration = .seconds(1)

    /// 16 MiB: on a fast link these arrive within a second. One new connection, whose rate doubles with each round trip, takes ten
    /// round trips for as many, and the request takes one.
    static let exposedBytesMax: Int64 = 16 << 20

    /// 5 s: all bytes are there, so an origin that does not answer, or asks for a longer delay, is not waited for.
    static let patience: Duration = .seconds(5)

    /// 2: one that fails is asked once more.
    static let attemptsMax = 2

    /// The request in progress, absent if there is none.
    private(set) var lease: LeaseID?
    private var failures: [SourceID: Int] = [:]
    private var disagreements: [SourceID: Disagreement] = [:]
    /// The sources of which nothing proves that their last bytes are from one version.
    private(set) var unconfirmed: Set<SourceID> = []

    mutating func ask(_ lease: LeaseID) { self.lease = lease }

    mutating func end() { self.lease = nil }

    /// The answers of a source with another validator.
    func disagreement(of source: SourceID) -> Disagreement { self.disagreements[source] ?? Disagreement() }

    /// - Parameter earlier: The disagreement before the first request.
    mutating func note(_ difference: String, of source: SourceID, after earlier: Disagreement) {
        self.disagreements[source, default: earlier].note(difference)
    }

    /// The number of requests without an answer.
    func failures(of source: SourceID) -> Int { self.failures[source] ?? 0 }

    mutating func countFailure(of source: SourceID) { self.failures[source, default: 0] += 1 }

    /// Leaves a source unconfirmed.
    mutating func giveUp(_ source: SourceID) { self.unconfirmed.insert(source) }
}
