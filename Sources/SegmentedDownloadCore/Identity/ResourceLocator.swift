/// What is known of the place that a representation came from.
package enum ResourceLocator: Hashable, Sendable {
    /// It came in this run.
    case named(ResourceName)
    /// An earlier run stored this hash of its name.
    case recorded(ResourceFingerprint)
    /// An earlier version of segdl, which stored no name, fetched it.
    case unrecorded

    /// Whether both are known to be the same resource.
    package func isSame(as other: ResourceLocator) -> Bool {
        switch (self, other) {
        case (.named(let left), .named(let right)): left == right
        case (.recorded(let stored), .named(let name)), (.named(let name), .recorded(let stored)):
            stored == ResourceFingerprint(of: name, salt: stored.salt)
        case (.recorded(let left), .recorded(let right)): left == right
        case (.unrecorded, _), (_, .unrecorded): false
        }
    }

    /// The fingerprint to store, absent if no name was ever known.
    package func fingerprint(salt: UInt64) -> ResourceFingerprint? {
        switch self {
        case .named(let name): ResourceFingerprint(of: name, salt: salt)
        case .recorded(let stored): stored
        case .unrecorded: nil
        }
    }
}
