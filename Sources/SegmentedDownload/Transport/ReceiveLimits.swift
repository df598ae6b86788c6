/// How much one connection may take from the network before what it took is written.
package struct ReceiveLimits: Hashable, Sendable {
    /// Bytes in memory, in whatever form; absent for no limit.
    package var memory: Int?
    /// Bytes at once; absent for no limit. Where a rate is limited, more would come in jerks.
    package var pieceLength: Int?

    package init(memory: Int? = nil, pieceLength: Int? = nil) {
        self.memory = memory
        self.pieceLength = pieceLength
    }

    /// What keeps to both.
    func stricter(_ other: ReceiveLimits) -> ReceiveLimits {
        ReceiveLimits(
            memory: Self.min(self.memory, other.memory), pieceLength: Self.min(self.pieceLength, other.pieceLength))
    }

    private static func min(_ one: Int?, _ other: Int?) -> Int? {
        [one, other].compactMap { $0 }.min()
    }
}

/// The limits of all who use a transport: each connection keeps to the strictest, for any of them may come to use it.
package struct SharedReceiveLimits: Sendable {
    /// As many as there are groups at once.
    private var limits: [(owner: ObjectIdentifier, limits: ReceiveLimits)] = []

    package init() {}

    package private(set) var strictest = ReceiveLimits()

    /// Sets what one of them wants, or forgets it.
    package mutating func update(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {
        self.limits.removeAll { $0.owner == owner }
        if let limits { self.limits.append((owner, limits)) }
        self.strictest = self.limits.reduce(ReceiveLimits()) { $0.stricter($1.limits) }
    }
}
