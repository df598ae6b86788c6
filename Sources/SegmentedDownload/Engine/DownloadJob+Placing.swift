import SegmentedDownloadCore
import Synchronization

/// How the complete file is verified and moved into place.
extension DownloadJob {
    /// Prepares a new latch that can interrupt a survey or the placing.
    func beginInterruptible() {
        self.shared.withLock { $0.interruption = Latch() }
    }

    /// Verifies the file and moves it into place.
    @discardableResult
    func place(length: Int64, evidence: Evidence) async throws -> VerifiedFile {
        let (part, resource, flag, digests, replaceable) = self.shared.withLock { shared in
            (shared.part, shared.resource, shared.interruption, shared.digests.all, shared.replaceable)
        }
        guard let part, let resource else { throw DownloadError(.internal, "there is no part file to finish") }
        var finisher = Finisher(
            storage: self.storage, part: part, resource: resource, digests: digests,
            computedDigests: self.request.computedDigests,
            replaces: self.request.ifExists == .overwrite || self.replacesExisting, alternative: self.alternative,
            keepsRemoteTime: self.request.keepsRemoteTime)
        finisher.evidence = evidence
        finisher.lengthExpected = self.request.lengthExpected
        finisher.replaceable = replaceable
        finisher.pieceDigests = self.pieceDigests
        finisher.placing = self.request.placing
        // Another download of the run may have got there since the survey.
        if self.output == nil { try self.checkOverwritten(part.paths) }
        var placed: StorageStatus?
        self.placed.beginPlacing(self.content, at: part.paths.destination)
        defer { self.placed.endPlacing(self.content, at: part.paths.destination, placed) }
        if length == 0 { try await self.output?.begin { !flag.isRaised && !Task.isCancelled } }
        let result: Finisher.Result
        do {
            result =
                self.output == nil
                ? try await finisher.finish(length: length, unless: flag)
                : try await finisher.handOn(length: length, unless: flag)
        } catch {
            // The file is in place, and a step after that failed. The next attempt finds it, and must not replace it by
            // the same bytes.
            if part.isPlaced { self.shared.withLock { $0.replacesExisting = false } }
            throw error
        }
        if let paths = result.paths { self.shared.withLock { $0.destination.paths = paths } }
        placed = result.status
        return result.file
    }

    func interrupt() {
        let part = self.shared.withLock { shared in
            shared.interruption.raise()
            return shared.part
        }
        part?.reader?.wake()
    }
}
