import SegmentedDownloadCore
import Synchronization

/// The files that a group's downloads have put in place or found to be theirs, so that the download of another file neither
/// replaces one of them nor counts it as complete.
final class PlacedFiles: Sendable {
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
        let content: RequestedContent
        let run: Int
        /// The download that claims the file and may still replace it; nil if the file is in place.
        var owner: DownloadID?
    }

    private struct State {
        var entries: [FileIdentity: Entry] = [:]
        /// The oldest first.
        var order: [FileIdentity] = []
        /// The destinations of files that are being put in place, and may be there already.
        var placing: [String: RequestedContent] = [:]
        /// The number of the present run.
        var run = 0

        mutating func add(_ entry: Entry, _ identity: FileIdentity) {
            if self.entries.updateValue(entry, forKey: identity) == nil { self.order.append(identity) }
            guard self.order.count > PlacedFiles.countMax else { return }
            // Half at once, so that few of the removals move the others.
            for identity in self.order.prefix(PlacedFiles.countMax / 2) { self.entries[identity] = nil }
            self.order.removeFirst(PlacedFiles.countMax / 2)
        }
    }

    private let state = Mutex(State())

    /// Notes that a download is added while no other one of the group is active.
    func beginRun() { self.state.withLock { $0.run += 1 } }

    /// Notes that a file is about to be put in place. From now on other downloads find it.
    func beginPlacing(_ content: RequestedContent, at destination: String) {
        self.state.withLock { $0.placing[destination] = content }
    }

    /// Notes the end of what ``beginPlacing(_:at:)`` began.
    ///
    /// - Parameter status: The placed file's status; nil if there is none.
    func endPlacing(_ content: RequestedContent, at destination: String, _ status: StorageStatus?) {
        self.state.withLock { state in
            state.placing[destination] = nil
            guard let status else { return }
            state.add(Entry(content: content, run: state.run), status.identity)
        }
    }

    /// Claims a file that was there before for one download, so that no other one of the run replaces it or counts it as complete.
    ///
    /// - Parameter isIdentified: Whether digests show that the file is the download's, also if another one claims it.
    /// - Returns: Whether it may go on. If not, another download of the run has claimed the file.
    func claim(
        _ content: RequestedContent, _ status: StorageStatus, at path: String, by id: DownloadID, isIdentified: Bool
    ) -> Bool {
        self.state.withLock { state in
            if let placing = state.placing[path], !placing.covers(content) { return false }
            if let entry = state.entries[status.identity] {
                // Whether a file that the group has put in place may be kept or replaced is decided later.
                if entry.content.covers(content) || entry.owner == nil || isIdentified { return true }
                if entry.run == state.run { return false }
            }
            state.add(Entry(content: content, run: state.run, owner: id), status.identity)
            return true
        }
    }

    /// Ends the claim of a download.
    ///
    /// - Parameter isKept: Whether the file is the download's, so that it counts as put in place by it. Otherwise others may claim
    ///   the file.
    func endClaim(_ content: RequestedContent, _ identity: FileIdentity, by id: DownloadID, isKept: Bool) {
        self.state.withLock { state in
            if isKept {
                state.add(Entry(content: content, run: state.run), identity)
            } else if state.entries[identity]?.owner == id {
                state.entries[identity] = nil
                state.order.removeAll { $0 == identity }
            }
        }
    }

    /// Whether a download of the group has put a file in place for another request.
    ///
    /// - Parameter path: The path at which the file was found.
    func hasOther(than content: RequestedContent, _ status: StorageStatus, at path: String, in scope: Scope) -> Bool {
        self.state.withLock { state in
            if let placing = state.placing[path] { return !placing.covers(content) }
            guard let entry = state.entries[status.identity],
                scope == .group && entry.owner == nil || entry.run == state.run
            else { return false }
            return !entry.content.covers(content)
        }
    }
}
