import SegmentedDownloadCore
import Synchronization

/// What origins refuse in requests for files that they have, so that the first request for another file leaves it out.
final class RefusedFields: Sendable {
    private struct Entry {
        let omitted: OmittedFields
        /// How many more files are begun without it.
        var uses: Int
    }

    /// 100: then an origin is asked with all fields again, because it may accept them by now.
    private static let usesMax = 100
    /// 1,000: a service that has asked more origins begins anew.
    private static let originsMax = 1000

    private let origins = Mutex<[SourceURL.Origin: Entry]>([:])

    /// What to leave out of the first request for a file.
    func take(for origin: SourceURL.Origin) -> OmittedFields {
        self.origins.withLock { origins in
            guard let entry = origins[origin] else { return [] }
            if entry.uses > 1 { origins[origin]?.uses -= 1 } else { origins[origin] = nil }
            return entry.omitted
        }
    }

    /// Records what was left out of a first request that was answered.
    func note(_ omitted: OmittedFields, by origin: SourceURL.Origin) {
        self.origins.withLock { origins in
            guard !omitted.isEmpty, origins[origin]?.omitted != omitted else { return }
            if origins.count >= Self.originsMax { origins = [:] }
            origins[origin] = Entry(omitted: omitted, uses: Self.usesMax)
        }
    }
}
