import SegmentedDownloadCore

extension DownloadError {
    /// Converts an error of the transport or storage, which is one of our types, or of a cancelled task; any other error
    /// gets code `internal`.
    package init(wrapping error: any Error) {
        switch error {
        case let error as DownloadError: self = error
        case let error as StorageError: self = error.failure
        case is CancellationError: self.init(.cancelled, "the task was cancelled")
        default: self.init(.internal, "\(error)".printable)
        }
    }
}
