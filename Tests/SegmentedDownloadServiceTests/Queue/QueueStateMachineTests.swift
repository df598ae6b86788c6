import SegmentedDownloadCore
import SystemPackage
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadService

@Suite struct QueueStateMachineTests {
    typealias Machine = QueueStateMachine

    static func id(_ number: UInt64) -> QueueEntry.ID { QueueEntry.ID(number) }

    static func record(_ number: UInt64, _ wish: QueueRecord.Wish = .run) throws -> QueueRecord {
        let request = DownloadRequest(try SourceURL("http://host/\(number)"), to: .file("/d/\(number)"))
        return QueueRecord(
            id: Self.id(number), position: 0, wish: wish, added: 0,
            request: RecordedRequest(request, path: "/d/\(number)", hasName: false), secrets: RequestSecrets())
    }

    static func row(_ number: UInt64, _ outcome: HistoryEntry.Outcome = .completed) -> HistoryEntry {
        HistoryEntry(
            time: 1, id: Self.id(number).rawValue, url: "", path: FilePath("/d/\(number)"), bytes: 1, outcome: outcome,
            code: nil, message: nil, userInfo: [:])
    }

    /// A queue of this many entries that wait or run.
    private static func machine(_ count: UInt64, limit: Int) throws -> Machine {
        var machine = Machine([], limit: limit)
        _ = machine.handle(.add(try (1...count).map { try Self.record($0) }, first: false))
        return machine
    }

    @Test("Entries start in their order, as many as may run")
    func order() throws {
        var machine = Machine([], limit: 2)
        let actions = machine.handle(.add(try (1...3).map { try Self.record($0) }, first: false))
        #expect(actions.starts == [1, 2])
        #expect(machine.handle(.rested(Self.id(1), .completed(Self.row(1)))).starts == [3])
        #expect(machine.order == [Self.id(2), Self.id(3)])
    }

    @Test("A change is stored before the group is told")
    func storesFirst() throws {
        var machine = try Self.machine(1, limit: 1)
        for event in [.pause([Self.id(1)]), .cancel([Self.id(1)], keepingPartial: true)] as [Machine.Event] {
            let actions = machine.handle(event)
            guard case .store? = actions.first else {
                Issue.record("\(actions)")
                continue
            }
            #expect(actions.count == 2)
        }
    }

    @Test("A paused entry leaves the group, and the next one takes its place")
    func pauses() throws {
        var machine = try Self.machine(2, limit: 1)
        #expect(machine.handle(.pause([Self.id(1)])).contains(.pause(Self.id(1))))
        #expect(machine.handle(.rested(Self.id(1), .paused)) == [.remove(Self.id(1))])
        #expect(machine.handle(.removed(Self.id(1))).starts == [2])
        #expect(machine.handle(.resume([Self.id(1)])).starts.isEmpty)
        #expect(machine.handle(.rested(Self.id(2), .completed(Self.row(2)))).starts == [1])
    }

    @Test("An entry that is resumed while it is being paused starts again")
    func resumesEarly() throws {
        var machine = try Self.machine(1, limit: 1)
        _ = machine.handle(.pause([Self.id(1)]))
        #expect(machine.handle(.resume([Self.id(1)])).starts.isEmpty)
        _ = machine.handle(.rested(Self.id(1), .paused))
        #expect(machine.handle(.removed(Self.id(1))).starts == [1])
    }

    @Test("A failed entry stays with its error until it is tried again")
    func fails() throws {
        var machine = try Self.machine(1, limit: 1)
        let error = DownloadError(.server, "503")
        let actions = machine.handle(.rested(Self.id(1), .failed(error)))
        #expect(actions == [.store(.wish(Self.id(1), .retryLater(error), attempts: 1)), .remove(Self.id(1))])
        #expect(machine.handle(.removed(Self.id(1))).isEmpty)
        #expect(machine.handle(.resume([Self.id(1)])).starts == [1])
    }

    @Test("A cancelled entry leaves the queue when its download has ended, running or not", arguments: [1, 2])
    func cancels(_ number: UInt64) throws {
        var machine = try Self.machine(2, limit: 1)
        let actions = machine.handle(.cancel([Self.id(number)], keepingPartial: false))
        #expect(actions.contains(.load(Self.id(number))) == (number == 2))
        #expect(actions.last == .cancel(Self.id(number), keepingPartial: false))
        #expect(machine.order.count == 2)
        let row = Self.row(number, .cancelled)
        #expect(
            machine.handle(.rested(Self.id(number), .cancelled(row))).contains(.store(.finish(Self.id(number), row))))
        #expect(machine.order == [Self.id(3 - number)])
    }

    @Test("A cancellation that a crash interrupted is carried out")
    func cancelsAgain() throws {
        var machine = Machine([try Self.record(1, .cancel(keepingPartial: false))], limit: 1)
        #expect(machine.begin() == [.load(Self.id(1)), .cancel(Self.id(1), keepingPartial: false)])
    }

    @Test("The end of the group is no wish of the user")
    func ends() throws {
        var machine = try Self.machine(2, limit: 1)
        _ = machine.handle(.end)
        for outcome in [.paused, .cancelled(Self.row(1, .cancelled))] as [Machine.Outcome] {
            var ending = machine
            let actions = ending.handle(.rested(Self.id(1), outcome)) + ending.handle(.removed(Self.id(1)))
            #expect(actions == [.remove(Self.id(1))])
            #expect(ending.entries[Self.id(1)]?.record.wish == .run)
        }
    }

    /// What the changes leave in a database is what the machine has, so that a crash at any time loses nothing.
    @Test("The stored entries are those of the machine, in its order", arguments: UInt64(0)..<40)
    func stored(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        var machine = Machine([], limit: 3)
        var table: [QueueEntry.ID: QueueRecord] = [:]
        var finished: Set<QueueEntry.ID> = []
        var next: UInt64 = 1
        for _ in 0..<200 {
            let known = machine.order
            let id = known.randomElement(using: &generator) ?? Self.id(0)
            let event: Machine.Event
            switch Int.random(in: 0..<10, using: &generator) {
            case 0, 1:
                let records = try (next..<next + 3).map { try Self.record($0, .run) }
                next += 3
                event = .add(records, first: Bool.random(using: &generator))
            case 2: event = .pause([id])
            case 3: event = .resume([id])
            case 4: event = .cancel([id], keepingPartial: Bool.random(using: &generator))
            case 5: event = .move(id, to: Int.random(in: -1...known.count + 1, using: &generator))
            // Always the same two places: the room between two positions ends.
            case 6: event = .move(id, to: 1)
            case 7: event = .rested(id, .completed(Self.row(id.number)))
            case 8: event = .rested(id, .failed(DownloadError(.network, "reset")))
            default: event = .removed(id)
            }
            for case .store(let change) in machine.handle(event) {
                switch change {
                case .insert(let record): #expect(table.updateValue(record, forKey: record.id) == nil)
                case .position(let id, let position): table[id]?.position = position
                case .wish(let id, let wish, let attempts):
                    table[id]?.wish = wish
                    table[id]?.attempts = attempts
                case .request(let id, let request): table[id]?.request = request
                case .finish(let id, _):
                    #expect(table.removeValue(forKey: id) != nil && finished.insert(id).inserted)
                }
            }
            #expect(table == machine.entries.mapValues(\.record))
            #expect(table.values.sorted { $0.position < $1.position }.map(\.id) == machine.order)
            #expect(Set(table.values.map(\.position)).count == table.count)
            let active = machine.entries.values.filter { $0.phase != .idle }
            #expect(active.count { $0.record.wish == .run } <= 3)
        }
    }
}

extension [QueueStateMachine.Action] {
    /// The entries that are started, in order.
    var starts: [UInt64] {
        self.compactMap { action in
            if case .start(let id) = action { id.number } else { nil }
        }
    }
}
