import SegmentedDownloadCore

@testable import SegmentedDownload

extension WatchedPart {
    /// Surveys the destination on the watched disk as the next run does, with the part's lock free.
    func survey(
        _ policy: DownloadOptions.ExistingFilePolicy = .verify, digests: [ExpectedDigest] = []
    ) throws -> Surveyor.Finding {
        try Surveyor(storage: self.disk, digests: digests).survey(self.paths, policy: policy)
    }

    /// The code with which surveying fails.
    func surveyCode(_ policy: DownloadOptions.ExistingFilePolicy = .verify) async -> DownloadError.Code? {
        await failureCode { try self.survey(policy).part?.close() }
    }
}
