/// The destination as far as it is chosen, and whether a response may still name the file.
struct DestinationChoice: Hashable, Sendable {
    /// The paths known before any response; `nil` until they are needed.
    var first: DestinationPaths?
    /// The paths that were chosen by a survey, or at the end; `nil` before the first survey.
    var paths: DestinationPaths?
    /// Whether the name is settled. If not, a response may suggest another.
    private(set) var isSettled: Bool

    init(_ destination: DownloadRequest.Destination) {
        self.isSettled = if case .directory = destination { false } else { true }
    }

    mutating func settle() {
        self.isSettled = true
    }

    /// The paths under the name that a response suggests; `nil` if the survey chose its paths from that name or the name
    /// is settled.
    func renamed(to suggested: String) -> DestinationPaths? {
        guard !self.isSettled, let paths = self.paths, (self.first ?? paths).name != suggested else { return nil }
        return DestinationPaths(directory: paths.directory, name: suggested)
    }
}
