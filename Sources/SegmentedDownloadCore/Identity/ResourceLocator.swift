/// The location that a representation came from, as far as it is recorded.
package enum ResourceLocator: Hashable, Sendable {
    /// The name of a resource that answered in this run.
    case named(ResourceName)
    /// The fingerprint that an earlier run stored.
    case recorded(ResourceFingerprint)
    /// A resource fetched by an earlier version of segdl, which stored no name.
    case unrecorded

    /// Whether both are certainly the same resource. False if either is unrecorded.
    package func isSame(as other: ResourceLocator) -> Bool {
        switch (self, other) {
        case (.named(let left), .named(let right)): left == right
        case (.recorded(let stored), .named(let name)), (.named(let name), .recorded(let stored)):
            stored == ResourceFingerprint(of: name, salt: stored.salt)
        case (.recorded(let left), .recorded(let right)): left == right
        case (.unrecorded, _), (_, .unrecorded): false
        }
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
