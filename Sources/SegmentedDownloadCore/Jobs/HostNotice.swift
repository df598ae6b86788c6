/// What a process lets the other processes of the machine know about a host.
package struct HostNotice: Hashable, Sendable {
    package enum Kind: UInt32, Hashable, Sendable, CaseIterable {
        /// The host has refused a request, and must not be asked before the time.
        case refusal = 1
        /// The host has refused a task without a time, and the task asks again at the time: see ``PlaceTurns``.
        case waiting = 2
        /// A task has given up a place at the host, and leaves it to others until the time.
        case offer = 3
        /// A task takes the place that is offered until the time.
        case taken = 4
    }

    package let kind: Kind
    package let host: HostKey
    package let until: Duration

    package init(_ kind: Kind, host: HostKey, until: Duration) {
        (self.kind, self.host, self.until) = (kind, host, until)
    }

    /// What a notice is about. A table has one notice for each subject. An offer and its end have one subject.
    package struct Subject: Hashable, Sendable {
        fileprivate let kind: Kind
        fileprivate let host: HostKey
    }

    package var subject: Subject { Subject(kind: self.kind == .taken ? .offer : self.kind, host: self.host) }

    /// Whether the notice replaces another one of the same subject.
    ///
    /// Of refusals the one that ends last counts. Two tasks that wait are two facts, of which each must reach the others.
    package func replaces(_ other: HostNotice) -> Bool {
        switch self.kind {
        case .refusal: self.until > other.until
        case .waiting: self.until != other.until
        case .offer, .taken: self.kind != other.kind || self.until > other.until
        }
    }
}
