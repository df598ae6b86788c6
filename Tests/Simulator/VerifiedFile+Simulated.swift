package import SegmentedDownload
import SegmentedDownloadCore

extension VerifiedFile {
    /// A file that was received, as a model of the disk answers that it is in place.
    static func simulated(length: Int64) -> VerifiedFile {
        do throws(DownloadError) {
            return try .judged(
                Content(length: length), for: .init(), by: .received(RemoteResource(completeLength: length), .validator)
            )
        } catch {
            preconditionFailure("nothing is required of it: \(error)")
        }
    }
}

extension MachineEvent {
    /// Whether this is the result of a survey or of placing, which can be interrupted.
    var isInterruptible: Bool {
        if case .placed = self { true } else if case .surveyed = self { true } else { false }
    }
}

extension DownloadResult {
    /// What is reported of a complete file, for the records of jobs.
    package static func simulated(at path: String, length: Int64) -> DownloadResult {
        DownloadResult(
            reported: FilePath(path), bytes: length, bytesFetched: length, requests: 1, connectionsPeak: 1,
            duration: .zero, crc32: nil, digests: [], verifiedBy: .none, wasAlreadyComplete: false)
    }
}
