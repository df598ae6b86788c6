/// The location that a representation came from, as far as it is recorded.
package enum ResourceLocator: Hashable, Sendable {
    /// The name of a resource that answered in this run.
    case named(ResourceName)
    /// The fingerprint that an earlier run stored.
    case recorded(ResourceFingerprint)
    /// A resource fetched by an earlier version of segdl, which stored no name.
    case unrecorded

    /// Whether both are certainly the same resource. False if either is unrecorded.
    package func isSame(as other: ResourceLocator) -> Bool { self.relation(to: other) == .same }

    /// How the place that another response came from is related to this one.
    package func relation(to other: ResourceLocator) -> ResourceRelation {
        switch (self, other) {
        case (.named(let left), .named(let right)):
            guard left != right else { return .same }
            if left.requested == right.requested, left.place.utf8.elementsEqual(right.place.utf8) { return .otherQuery }
            return ResourceRelation(
                isSameRequest: left.requested == right.requested,
                isSameOrigin: left.origin.utf8.elementsEqual(right.origin.utf8))
        case (.recorded(let stored), .named(let name)), (.named(let name), .recorded(let stored)):
            return Self.relation(stored, ResourceFingerprint(of: name, salt: stored.salt))
        case (.recorded(let left), .recorded(let right)):
            return left.salt == right.salt ? Self.relation(left, right) : .unknown
        case (.unrecorded, _), (_, .unrecorded):
            return .unknown
        }
    }

    private static func relation(_ left: ResourceFingerprint, _ right: ResourceFingerprint) -> ResourceRelation {
        guard left.hash != right.hash else { return .same }
        guard let (one, other) = left.parts.flatMap({ one in right.parts.map { (one, $0) } }) else { return .unknown }
        return ResourceRelation(
            isSameRequest: one.requested == other.requested, isSameOrigin: one.origin == other.origin)
    }

    /// The fingerprint to store, absent if the name is unrecorded.
    package func fingerprint(salt: UInt64) -> ResourceFingerprint? {
        switch self {
        case .named(let name): ResourceFingerprint(of: name, salt: salt)
        case .recorded(let stored): stored
        case .unrecorded: nil
        }
    }
}

/// How the places that two responses came from are related, which decides what their validators say about each other.
package enum ResourceRelation: Hashable, Sendable {
    /// The same request led to the same URL.
    case same
    /// The same request led to the same path with another query, which often holds a token of an unknown kind.
    case otherQuery
    /// The same request led to another path of the same origin, or to another query of an unknown path.
    case sameOrigin
    /// The same request led to another origin.
    case otherOrigin
    /// Another URL was requested; the bytes came from the same origin or from another one.
    case otherRequest(isSameOrigin: Bool)
    /// An earlier version stored too little.
    case unknown

    /// The relation of two places that are not the same.
    fileprivate init(isSameRequest: Bool, isSameOrigin: Bool) {
        self = isSameRequest ? isSameOrigin ? .sameOrigin : .otherOrigin : .otherRequest(isSameOrigin: isSameOrigin)
    }
}
