import Synchronization

/// The files that a group's downloads have put in place, so that a download of another URL does not replace one of them.
final class PlacedFiles: Sendable {
    /// 10,000 files: a service runs for months, and a list is rarely longer.
    private static let countMax = 10_000

    private struct State {
        var sources: [FileIdentity: SourceURL] = [:]
        /// The oldest first.
        var order: [FileIdentity] = []
    }

    private let state = Mutex(State())

    func insert(_ status: StorageStatus, from source: SourceURL) {
        self.state.withLock { state in
            if state.sources.updateValue(source, forKey: status.identity) == nil { state.order.append(status.identity) }
            guard state.order.count > Self.countMax else { return }
            // Half at once, so that few of the removals move the others.
            for identity in state.order.prefix(Self.countMax / 2) { state.sources[identity] = nil }
            state.order.removeFirst(Self.countMax / 2)
        }
    }

    /// The source of a file that a download of the group has put in place; nil for other files.
    func source(of status: StorageStatus) -> SourceURL? {
        self.state.withLock { $0.sources[status.identity] }
    }
}
