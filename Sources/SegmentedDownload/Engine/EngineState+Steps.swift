import SegmentedDownloadCore

/// What changes a manifest, one step at a time for each download.
extension EngineState {
    enum ManifestStep: Hashable, Sendable {
        case checkpoint(isPause: Bool)
        case revision(Revision)
    }

    /// Begins a step if no other is under way; otherwise queues it.
    ///
    /// - Returns: Whether the step may begin now.
    mutating func begin(_ step: ManifestStep, of id: DownloadID) -> Bool {
        guard let index = self.index(id) else { return false }
        guard !self.entries[index].isStepping else {
            self.entries[index].stepsWaiting.append(step)
            return false
        }
        self.entries[index].isStepping = true
        return true
    }

    /// Ends a step.
    ///
    /// - Returns: The next step to begin, if one is queued.
    mutating func endStep(of id: DownloadID) -> ManifestStep? {
        guard let index = self.index(id) else { return nil }
        guard !self.entries[index].stepsWaiting.isEmpty else {
            self.entries[index].isStepping = false
            return nil
        }
        return self.entries[index].stepsWaiting.removeFirst()
    }
}
