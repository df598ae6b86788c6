import SegmentedDownloadCore

extension DownloadError {
    /// What our own doors threw.
    package init(wrapping error: any Error) {
        switch error {
        case let error as DownloadError: self = error
        case let error as StorageError: self.init(error.failure)
        case let failure as Failure: self.init(failure)
        default: self.init(.internal, "\(error)".printable)
        }
    }
}
