import SegmentedDownload
import SegmentedDownloadCore
import SegmentedDownloadService

/// Where each entry may be, by the commands that were sent and the answers that came.
///
/// A command that was sent may have taken effect; one that was answered has. What the database contains is compared with
/// this after every transaction and every crash.
final class QueueLedger: @unchecked Sendable {
    // Unchecked: the whole simulation runs on one thread.

    /// Where an entry is.
    enum Place: String, Hashable, Sendable {
        /// Neither in the queue nor in its history.
        case absent
        case queued, paused, failed, cancelling
        /// In the history, with this outcome.
        case completed, cancelled
    }

    struct Expectation {
        /// The file of its URL: the present one and, while a change may or may not have taken effect, the new one.
        var files: Set<Int>
        /// The files of earlier URLs.
        var filesBefore: Set<Int> = []
        let path: String
        /// The entries that one command added: all of them are there, or none.
        let batch: Int
        var places: Set<Place> = [.absent]
        /// Whether the last command that had an effect was a cancellation that deletes files.
        var deletes = false
    }

    private(set) var expectations: [QueueEntry.ID: Expectation] = [:]
    private(set) var violations: [String] = []
    private let database: SimulatedQueueDatabase
    private let clock: SimulatedClock
    private var batchNext = 0
    /// Whether the power was cut, after which the name of a manifest may be there again: its removal is not synced.
    var hadPowerCut = false

    init(_ database: SimulatedQueueDatabase, clock: SimulatedClock) {
        self.database = database
        self.clock = clock
        database.onCommit = { [unowned self] in self.check() }
    }

    func violate(_ what: String) { self.violations.append("\(what) at \(self.clock.now)") }

    // MARK: Commands

    /// Notes the entries that a command is about to add.
    func expect(_ files: [(id: QueueEntry.ID, file: Int, path: String)]) {
        self.batchNext += 1
        for (id, file, path) in files {
            self.expectations[id] = Expectation(files: [file], path: path, batch: self.batchNext)
        }
    }

    /// Notes that a command was sent, after which an entry may also be in these places.
    ///
    /// - Returns: The places before.
    func send(_ id: QueueEntry.ID, _ places: Set<Place>) -> Set<Place> {
        let before = self.expectations[id]?.places ?? []
        self.expectations[id]?.places.formUnion(places)
        return before
    }

    /// Notes an answer, after which an entry is in one of these places.
    func answer(_ id: QueueEntry.ID, _ places: Set<Place>, deletes: Bool? = nil) {
        self.expectations[id]?.places = places
        if let deletes { self.expectations[id]?.deletes = deletes }
    }

    /// Notes that a command was sent that changes the URL of an entry.
    ///
    /// - Returns: The files before.
    func sendChange(_ id: QueueEntry.ID, to file: Int) -> Set<Int> {
        let before = self.expectations[id]?.files ?? []
        self.expectations[id]?.files.insert(file)
        return before
    }

    /// Notes an answer, after which the URL of an entry is that of the new file; nil if it was not changed.
    func answerChange(_ id: QueueEntry.ID, from before: Set<Int>, to file: Int?) {
        if file != nil { self.expectations[id]?.filesBefore.formUnion(before) }
        self.expectations[id]?.files = file.map { [$0] } ?? before
    }

    /// The files that a path may have at some time; nil if no entry has the path.
    func files(at path: String) -> Set<Int>? {
        let entries = self.expectations.values.filter { $0.path == path }
        return entries.isEmpty ? nil : entries.reduce(into: []) { $0.formUnion($1.files.union($1.filesBefore)) }
    }

    // MARK: Checks

    /// Checks that no entry is lost, doubled, or in a place where it cannot be.
    func check() {
        let content = self.database.content
        var places = content.records.mapValues { Self.place($0.state) }
        for row in content.history {
            guard let id = QueueEntry.ID(rawValue: row.id) else { return self.violate("\(row.id) is no ID") }
            guard places[id] == nil else { return self.violate("\(Self.name(id)) is there twice") }
            places[id] = row.outcome == .completed ? .completed : row.outcome == .cancelled ? .cancelled : .failed
        }
        var present: [Int: Bool] = [:]
        for (id, expectation) in self.expectations {
            let place = places.removeValue(forKey: id) ?? .absent
            if !expectation.places.contains(place) {
                let words = expectation.places.map(\.rawValue).sorted().joined(separator: " or ")
                self.violate("\(Self.name(id)) is \(place), and should be \(words)")
            }
            let isThere = place != .absent
            if present.updateValue(isThere, forKey: expectation.batch) == !isThere {
                self.violate("only some entries of one command are there, among them \(Self.name(id)) or not")
            }
        }
        for id in places.keys { self.violate("\(Self.name(id)) was never added") }
        if Set(content.records.values.map(\.position)).count != content.records.count {
            self.violate("two entries have one position")
        }
    }

    private static func place(_ state: QueueRecord.State) -> Place {
        switch state {
        case .queued: .queued
        case .paused: .paused
        case .failed: .failed
        case .cancelling: .cancelling
        }
    }

    /// Checks at the end that every entry has ended as it should, and that files and partial files are as they should be.
    func checkEnd(_ disk: SimulatedDisk, _ network: SimulatedNetwork) {
        self.check()
        let content = self.database.content
        for (id, record) in content.records {
            // The file in its way may also be that of an earlier URL.
            guard case .failed(let error) = record.state, error.code == .exists,
                let expectation = self.expectations[id],
                Self.isRight(disk.names[expectation.path], expectation.files.union(expectation.filesBefore), network)
            else {
                self.violate("\(Self.name(id)) never ends: \(record.state)")
                continue
            }
        }
        let shared = Dictionary(grouping: self.expectations.values, by: \.path).filter { $0.value.count > 1 }
        let cancelled = Set(content.history.filter { $0.outcome == .cancelled }.map(\.path.string))
        for row in content.history {
            guard let id = QueueEntry.ID(rawValue: row.id), let expectation = self.expectations[id] else { continue }
            let path = expectation.path
            let leftovers =
                self.hadPowerCut
                ? []
                : ["", "-part"].map { path + ".segdl" + $0 }
                    .filter { disk.names[$0] != nil }
            switch row.outcome {
            case .completed:
                guard Self.isRight(disk.names[path], expectation.files, network) else {
                    self.violate("\(Self.name(id)) is complete, and \(path) is missing or wrong")
                    continue
                }
                // Another entry may have kept its own.
                if !leftovers.isEmpty, !cancelled.contains(path) {
                    self.violate("\(leftovers) are left of a complete file")
                }
            case .cancelled where expectation.deletes && shared[path] == nil:
                if !leftovers.isEmpty { self.violate("\(leftovers) are left of a deleted file") }
            case .cancelled, .failed: break
            }
        }
    }

    private static func isRight(
        _ inode: SimulatedDisk.Inode?, _ files: Set<Int>, _ network: SimulatedNetwork
    ) -> Bool {
        guard let inode else { return false }
        return files.contains { network.versions(of: $0).contains { $0.bytes == inode.bytes } }
    }

    private static func name(_ id: QueueEntry.ID) -> String { "entry \(id.number)" }
}
