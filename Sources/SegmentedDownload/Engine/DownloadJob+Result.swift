import SegmentedDownloadCore
import Synchronization
import SystemPackage

extension DownloadJob {
    /// The result of a completed download.
    func result(duration: Duration, wasAlreadyComplete: Bool) -> DownloadResult {
        let hasPieces = self.pieceDigests != nil
        return self.shared.withLock { shared in
            let digests = shared.digests.all
            return DownloadResult(
                path: FilePath(shared.destination.paths?.destination ?? ""),
                bytes: shared.finished?.length ?? shared.progress.bytesDone,
                bytesFetched: shared.counts.bytesFetched, requests: shared.counts.requests,
                connectionsPeak: shared.counts.connectionsPeak, duration: duration, crc32: shared.finished?.crc.hex,
                digests: digests + (shared.finished?.computed(besides: digests) ?? []),
                verifiedBy: wasAlreadyComplete && self.request.ifExists == .skip
                    ? .none
                    : DownloadResult.Verification(
                        of: shared.resource, hasDigests: !digests.isEmpty || hasPieces,
                        evidence: shared.evidence),
                wasAlreadyComplete: wasAlreadyComplete)
        }
    }
}

extension DownloadResult.Verification {
    /// The strongest proof that a complete file is the resource.
    ///
    /// - Parameters:
    ///   - hasDigests: Whether the file was verified against digests.
    ///   - evidence: What is known without digests.
    init(of resource: RemoteResource?, hasDigests: Bool, evidence: Evidence) {
        guard !hasDigests else {
            self = .digest
            return
        }
        guard evidence != .comparison else {
            self = .comparison
            return
        }
        guard evidence == .validator, let resource, !resource.endsWithConnection,
            case .same(let proof) = resource.validator.compare(with: resource.validator)
        else {
            self = .none
            return
        }
        switch proof {
        case .etag: self = .etag
        case .lastModified: self = .lastModified
        }
    }
}
