/// What an answer depends on besides its request: the past of the path, the time and chance, all as values.
struct Moment: Hashable, Sendable {
    /// The one-based ordinal of the request among those of its path and query.
    var requestOrdinal = 1
    /// The ordinal that a body would have if this request were answered with one.
    var bodyOrdinal = 1
    /// Requests of this path and query that are being answered now, this one and refused ones not counted.
    var liveCount = 0
    /// Bytes of body sent for this path and query.
    var bytesSent: Int64 = 0
    var replacement: Replacement?
    /// Since the origin's start.
    var elapsed: Duration = .zero
    var unixSeconds: Int64 = 0
    var nonce: UInt64 = 0

    /// What a test said a path serves from now on.
    struct Replacement: Hashable, Sendable {
        var seed: UInt64
        var size: Int64?
        var entityTag: Behaviour.EntityTag
        /// Replacements of this path so far, this one included.
        var ordinal: Int
    }
}

/// The representation that a path has at a moment, and its validators.
struct Representation: Hashable, Sendable {
    var size: Int64
    var seed: UInt64
    var entityTag: String?
    var lastModified: Int64?

    init(_ behaviour: Behaviour, at moment: Moment) {
        var changes = moment.replacement?.ordinal ?? 0
        self.size = moment.replacement?.size ?? behaviour.size
        self.seed = moment.replacement?.seed ?? behaviour.seed
        if let change = behaviour.changeAfterRequests, moment.requestOrdinal > change.trigger {
            self.seed = change.seed
            changes += 1
        }
        if let change = behaviour.changeAfterBytes, moment.bytesSent >= change.trigger {
            self.seed = change.seed
            changes += 1
        }

        self.entityTag =
            switch moment.replacement?.entityTag ?? behaviour.entityTag {
            case .standard: "\"\(self.size)-\(self.seed)\""
            case .weak: "W/\"\(self.size)-\(self.seed)\""
            case .random: "\"\(String(moment.nonce, radix: 16))\""
            case .none: nil
            case .fixed(let text): text
            }
        self.lastModified =
            switch behaviour.lastModified {
            case .standard: 1_700_000_000 + 3600 * Int64(changes)
            case .none: nil
            case .at(let unixSeconds): unixSeconds
            }
    }

    /// Whether an `If-Range` field names this representation, by strong comparison (RFC 9110 §13.1.5).
    func matches(ifRange field: String, unixSeconds: Int64) -> Bool {
        if field.hasPrefix("W/") { return false }
        if field.hasPrefix("\"") { return field == self.entityTag }
        guard let lastModified = self.lastModified else { return false }
        // A date is a strong validator only when a second has passed since (RFC 9110 §8.8.2.2).
        return lastModified < unixSeconds && field == HTTPDate(unixSeconds: lastModified).description
    }
}
