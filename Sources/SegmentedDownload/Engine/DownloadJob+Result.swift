import SegmentedDownloadCore
import Synchronization
import SystemPackage

extension DownloadJob {
    /// The result of a completed download.
    func result(_ file: VerifiedFile, duration: Duration) -> DownloadResult {
        self.shared.withLock { shared in
            DownloadResult(
                file, path: FilePath(shared.destination.paths?.destination ?? ""), counts: shared.counts,
                duration: duration)
        }
    }
}

extension DownloadResult {
    /// The only initializer for downloads of this process.
    fileprivate init(_ file: VerifiedFile, path: FilePath, counts: TransferCounts, duration: Duration) {
        let digests = file.requirements.digests
        // Those that were requested but not expected, in the order of the algorithms' declaration.
        let computed = ExpectedDigest.Algorithm.allCases.compactMap { algorithm -> ExpectedDigest? in
            guard algorithm != .crc32, !digests.contains(where: { $0.algorithm == algorithm }) else { return nil }
            return file.content.hexes[algorithm].flatMap { ExpectedDigest(algorithm, hex: $0) }
        }
        self.init(
            reported: path, bytes: file.length, bytesFetched: counts.bytesFetched, requests: counts.requests,
            connectionsPeak: counts.connectionsPeak, duration: duration,
            crc32: file.wasThere ? nil : file.crc?.hex, digests: digests + computed, verifiedBy: Verification(of: file),
            wasAlreadyComplete: file.wasThere)
    }
}

extension DownloadResult.Verification {
    /// The strongest proof that a complete file is the resource.
    init(of file: VerifiedFile) {
        guard !file.requirements.hasDigests else {
            self = .digest
            return
        }
        let resource: RemoteResource
        switch file.proof {
        case .received(_, .comparison):
            self = .comparison
            return
        case .received(let received, .validator): resource = received
        case .confirmed(let confirmed): resource = confirmed
        case .received(_, .none), .recorded, .digests, .kept:
            self = .none
            return
        }
        guard !resource.endsWithConnection, case .same(let proof) = resource.validator.compare(with: resource.validator)
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
