import SegmentedDownloadCore
import Synchronization

/// What origins refuse in requests for files that they have, so that the first request for another file leaves it out.
final class RefusedFields: Sendable {
    /// 1,000: a service that has asked more origins begins anew.
    private static let originsMax = 1000

    private let origins = Mutex<[SourceURL.Origin: OmittedFields]>([:])

    /// What is left out of the first request for a file.
    subscript(origin: SourceURL.Origin) -> OmittedFields { self.origins.withLock { $0[origin] ?? [] } }

    /// Records what was left out of a request that worked. An origin that refuses nothing needs no entry.
    func note(_ omitted: OmittedFields, by origin: SourceURL.Origin) {
        self.origins.withLock { origins in
            guard !omitted.isEmpty || origins[origin] != nil else { return }
            if origins.count >= Self.originsMax { origins = [:] }
            origins[origin] = omitted
        }
    }
}
