import SegmentedDownloadCore
import Synchronization

/// The files that a group's downloads have put in place, so that the download of another file neither replaces one of
/// them nor takes it for its own.
final class PlacedFiles: Sendable {
    /// What a download fetches: a resource, or a part of it.
    struct Content: Hashable {
        private let resource: String
        private let part: DownloadOptions.Part?

        init(_ request: DownloadRequest) {
            self.resource = request.source.resourceText
            self.part = request.part
        }
    }

    /// Which files of the group count.
    enum Scope {
        /// All files. A download that found nothing at its destination expects none of them.
        case group
        /// Those of the present run. A request that replaces or skips any existing file means the older ones too.
        case run
    }

    /// 10,000 files: a service runs for months, and a list is rarely longer.
    private static let countMax = 10_000

    private struct Entry {
        let content: Content
        let run: Int
    }

    private struct State {
        var entries: [FileIdentity: Entry] = [:]
        /// The oldest first.
        var order: [FileIdentity] = []
        /// The destinations of files that are being put in place, and may be there already.
        var placing: [String: Content] = [:]
        /// The number of the present run.
        var run = 0
    }

    private let state = Mutex(State())

    /// Notes that a download is added while no other one of the group is active.
    func beginRun() { self.state.withLock { $0.run += 1 } }

    /// Notes that a file is about to be put in place. From now on other downloads find it.
    func beginPlacing(_ content: Content, at destination: String) {
        self.state.withLock { $0.placing[destination] = content }
    }

    /// Notes the end of what ``beginPlacing(_:at:)`` began.
    ///
    /// - Parameter status: The placed file's status; nil if there is none.
    func endPlacing(_ content: Content, at destination: String, _ status: StorageStatus?) {
        self.state.withLock { state in
            state.placing[destination] = nil
            guard let status else { return }
            let entry = Entry(content: content, run: state.run)
            if state.entries.updateValue(entry, forKey: status.identity) == nil { state.order.append(status.identity) }
            guard state.order.count > Self.countMax else { return }
            // Half at once, so that few of the removals move the others.
            for identity in state.order.prefix(Self.countMax / 2) { state.entries[identity] = nil }
            state.order.removeFirst(Self.countMax / 2)
        }
    }

    /// Whether a download of the group has put a file in place that has another content.
    ///
    /// - Parameter path: The path at which the file was found.
    func hasOther(than content: Content, _ status: StorageStatus, at path: String, in scope: Scope) -> Bool {
        self.state.withLock { state in
            if let placing = state.placing[path] { return placing != content }
            guard let entry = state.entries[status.identity], scope == .group || entry.run == state.run else {
                return false
            }
            return entry.content != content
        }
    }
}
