/// The values that an answer depends on besides its request: the path's history, the time and chance.
struct Moment: Hashable, Sendable {
    /// The one-based ordinal of the request among those of its path and query.
    var requestOrdinal = 1
    /// The one-based ordinal of the connection among all of the origin's.
    var connection = 1
    /// The ordinal of the body if this request gets one.
    var bodyOrdinal = 1
    /// Requests of this path and query in progress, without this one and refused ones.
    var liveCount = 0
    /// Bytes of body sent for this path and query.
    var bytesSent: Int64 = 0
    var replacement: Replacement?
    /// Since the origin's start.
    var elapsed: Duration = .zero
    var unixSeconds: Int64 = 0
    var nonce: UInt64 = 0

    /// The content that a test makes a path serve from now on.
    struct Replacement: Hashable, Sendable {
        var seed: UInt64
        var size: Int64?
        var entityTag: Behaviour.EntityTag
        /// The number of replacements of this path, including this one.
        var ordinal: Int
    }
}

/// The representation of a path at a moment, and its validators.
struct Representation: Hashable, Sendable {
    var size: Int64
    var seed: UInt64
    /// The value of the `ETag` field, or of several with line ends between them.
    var entityTag: [UInt8]?
    var lastModified: [UInt8]?
    private var modified: Int64?

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

        let node = behaviour.nodes.isEmpty ? nil : (moment.connection - 1) % behaviour.nodes.count
        // A change of the content applies to all nodes.
        if let node, changes == 0 { self.seed = behaviour.nodes[node] }

        let tag: String? =
            switch moment.replacement?.entityTag ?? behaviour.entityTag {
            case .standard: node.map { "\"n\($0)-\(changes)\"" } ?? "\"\(self.size)-\(self.seed)\""
            case .weak: "W/\"\(self.size)-\(self.seed)\""
            case .random: "\"\(String(moment.nonce, radix: 16))\""
            case .none: nil
            case .fixed(let text): text
            }
        self.modified =
            switch behaviour.lastModified {
            case .standard: 1_700_000_000 + 3600 * Int64(changes) + Int64(node ?? 0)
            case .none: nil
            case .at(let unixSeconds): unixSeconds
            }
        self.entityTag = behaviour.rawEntityTags.turn(changes + 1) ?? tag.map { Array($0.utf8) }
        self.lastModified =
            behaviour.rawModifications.turn(changes + 1)
            ?? self.modified.map { Array(HTTPDate(unixSeconds: $0).description.utf8) }
    }

    /// Whether an `If-Range` field matches this representation, by strong comparison (RFC 9110 §13.1.5).
    func matches(ifRange field: String, unixSeconds: Int64) -> Bool {
        if field.hasPrefix("W/") { return false }
        if field.hasPrefix("\"") { return self.matches(tag: field) }
        guard let modified = self.modified, let lastModified = self.lastModified else { return false }
        // A date is a strong validator only if at least a second has passed since (RFC 9110 §8.8.2.2).
        return modified < unixSeconds && field == String(decoding: lastModified, as: UTF8.self)
    }

    /// Whether a field matches this representation. The text shows all bytes that are not UTF-8 alike.
    func matches(tag field: String) -> Bool {
        self.entityTag.map { String(decoding: $0, as: UTF8.self) } == field
    }
}

extension Array {
    /// The element for a one-based ordinal; the last one applies to all later ordinals.
    func turn(_ ordinal: Int) -> Element? {
        self.isEmpty ? nil : self[Swift.min(ordinal, self.count) - 1]
    }
}
