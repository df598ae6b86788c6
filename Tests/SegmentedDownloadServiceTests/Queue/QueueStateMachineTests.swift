import SegmentedDownloadCore
import SystemPackage
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadService

@Suite struct QueueStateMachineTests {
    typealias Machine = QueueStateMachine

    static func id(_ number: UInt64) -> QueueEntry.ID { QueueEntry.ID(number) }

    static func record(
        _ number: UInt64, _ state: QueueRecord.State = .queued, hasBegun: Bool = false
    ) throws -> QueueRecord {
        let request = DownloadRequest(try SourceURL("http://host/\(number)"), to: .file("/d/\(number)"))
        return QueueRecord(
            id: Self.id(number), position: 0, state: state, added: 0, hasBegun: hasBegun,
            request: try QueuedRequest(request, path: FilePath("/d/\(number)"), hasName: false))
    }

    static func row(_ number: UInt64, _ outcome: HistoryEntry.Outcome = .completed) -> HistoryEntry {
        HistoryEntry(
            time: 1, id: Self.id(number).rawValue, url: "", path: FilePath("/d/\(number)"), bytes: 1, outcome: outcome,
            code: nil, message: nil, userInfo: [:])
    }

    /// A queue of this many entries that wait or run.
    private static func machine(_ count: UInt64, limit: Int, hasBegun: Bool = false) throws -> Machine {
        var machine = Machine([], limit: limit)
        let records = try (1...count).map { try Self.record($0, hasBegun: hasBegun) }
        _ = machine.handle(.add(records, first: false))
        return machine
    }

    @Test("Entries start in their order, as many as may run, and at least one")
    func order() throws {
        for limit in [0, 2] {
            var machine = Machine([], limit: limit)
            let actions = machine.handle(.add(try (1...3).map { try Self.record($0) }, first: false))
            #expect(actions.starts == (limit == 0 ? [1] : [1, 2]))
            #expect(machine.handle(.ended(Self.id(1), .completed(Self.row(1)))).starts == (limit == 0 ? [2] : [3]))
            #expect(machine.order == [Self.id(2), Self.id(3)])
        }
    }

    @Test("A change is stored before anything is done with the group")
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
        #expect(machine.handle(.ended(Self.id(1), .paused(nil))) == [.remove(Self.id(1))])
        #expect(machine.handle(.removed(Self.id(1))).starts == [2])
        #expect(machine.handle(.resume([Self.id(1)])).starts.isEmpty)
        #expect(machine.handle(.ended(Self.id(2), .completed(Self.row(2)))).starts == [1])
    }

    @Test("An entry that is resumed while it is being paused starts again")
    func resumesEarly() throws {
        var machine = try Self.machine(1, limit: 1)
        _ = machine.handle(.pause([Self.id(1)]))
        #expect(machine.handle(.resume([Self.id(1)])).starts.isEmpty)
        _ = machine.handle(.ended(Self.id(1), .paused(nil)))
        #expect(machine.handle(.removed(Self.id(1))).starts == [1])
    }

    @Test("A failed entry stays with its error until it is resumed")
    func fails() throws {
        var machine = try Self.machine(1, limit: 1)
        let error = DownloadError(.server, "503")
        let actions = machine.handle(.ended(Self.id(1), .failed(error, nil)))
        #expect(actions == [.store(.state(Self.id(1), .failed(error), attempts: 1)), .remove(Self.id(1))])
        #expect(machine.handle(.removed(Self.id(1))).isEmpty)
        #expect(machine.handle(.resume([Self.id(1)])).starts == [1])
    }

    // MARK: Cancelling

    @Test("An entry whose files are to be deleted ends after that, whether it runs or waits", arguments: [1, 2])
    func deletes(_ number: UInt64) throws {
        var machine = try Self.machine(2, limit: 1, hasBegun: true)
        let actions = machine.handle(.cancel([Self.id(number)], keepingPartial: false))
        #expect(actions.contains(.load(Self.id(number))) == (number == 2))
        #expect(actions.contains(.cancel(Self.id(number), keepingPartial: false)))
        #expect(machine.order.count == 2)
        let row = Self.row(number, .cancelled)
        #expect(
            machine.handle(.ended(Self.id(number), .cancelled(row))).contains(.store(.finish(Self.id(number), row))))
        #expect(machine.order == [Self.id(3 - number)])
    }

    @Test("An entry that waits ends at once if it has no files or keeps them", arguments: [true, false])
    func cancelsAtOnce(hasBegun: Bool) throws {
        var machine = try Self.machine(2, limit: 1, hasBegun: hasBegun)
        let actions = machine.handle(.cancel([Self.id(2)], keepingPartial: hasBegun))
        #expect(actions.count == 2 && actions.finished == [2] && machine.order == [Self.id(1)])
    }

    @Test("A cancellation that a crash interrupted is carried out before the others start")
    func cancelsAgain() throws {
        let records = [
            try Self.record(1, .cancelling(keepingPartial: false), hasBegun: true),
            try Self.record(2, .cancelling(keepingPartial: false)), try Self.record(3),
        ]
        var machine = Machine(records, limit: 2)
        let actions = machine.handle(.begin)
        #expect(actions.prefix(2) == [.load(Self.id(1)), .cancel(Self.id(1), keepingPartial: false)])
        #expect(actions.finished == [2] && actions.starts == [3])
    }

    @Test("An entry whose files cannot be deleted fails, gives its place away, and can be cancelled again")
    func cancelFails() throws {
        var machine = try Self.machine(2, limit: 1, hasBegun: true)
        _ = machine.handle(.cancel([Self.id(1)], keepingPartial: false))
        let error = DownloadError(.file, "read-only")
        // The download's own failure comes first, and decides nothing.
        #expect(machine.handle(.ended(Self.id(1), .failed(error, nil))).isEmpty)
        let actions = machine.handle(.cancelFailed(Self.id(1), error))
        #expect(actions == [.store(.state(Self.id(1), .failed(error), attempts: 0)), .remove(Self.id(1))])
        #expect(machine.handle(.removed(Self.id(1))).starts == [2])
        #expect(machine.handle(.cancel([Self.id(1)], keepingPartial: true)).finished == [1])
    }

    // MARK: The same file

    @Test("An entry for a file that another one fetches starts after that one")
    func blocked() throws {
        for end in [
            [.ended(Self.id(1), .completed(Self.row(1)))], [.ended(Self.id(1), .paused(nil)), .removed(Self.id(1))],
        ]
            as [[Machine.Event]]
        {
            var machine = try Self.machine(3, limit: 2)
            #expect(machine.handle(.blocked(Self.id(2), by: Self.id(1))).starts == [3])
            #expect(machine.handle(.ended(Self.id(3), .completed(Self.row(3)))).starts.isEmpty)
            #expect(end.flatMap { machine.handle($0) }.starts.contains(2))
        }
    }

    @Test("A blocked entry that is cancelled ends at once: its files are those of the other")
    func cancelsBlocked() throws {
        var machine = try Self.machine(2, limit: 2, hasBegun: true)
        _ = machine.handle(.blocked(Self.id(2), by: Self.id(1)))
        #expect(machine.handle(.cancel([Self.id(2)], keepingPartial: false)).finished == [2])
        var loaded = Machine(
            [try Self.record(1), try Self.record(2, .cancelling(keepingPartial: false), hasBegun: true)], limit: 2)
        _ = loaded.handle(.begin)
        #expect(loaded.handle(.blocked(Self.id(2), by: Self.id(1))).finished == [2])
    }

    @Test("An entry that is blocked by one that is gone starts again, or ends if it was cancelled")
    func blockedByNone() throws {
        var machine = try Self.machine(1, limit: 1)
        #expect(machine.handle(.blocked(Self.id(1), by: Self.id(9))).starts == [1])
        _ = machine.handle(.cancel([Self.id(1)], keepingPartial: true))
        #expect(machine.handle(.blocked(Self.id(1), by: Self.id(9))).finished == [1])
    }

    @Test("An entry does not delete a file that another one has, too")
    func sharedFile() throws {
        var records = try (1...2).map { try Self.record($0, .paused, hasBegun: true) }
        records[1].request = records[0].request
        var machine = Machine(records, limit: 2)
        #expect(machine.handle(.cancel([Self.id(1)], keepingPartial: false)).finished == [1])
        #expect(machine.handle(.cancel([Self.id(2)], keepingPartial: false)).contains(.load(Self.id(2))))
    }

    @Test("An entry that cannot be added to the group fails, or ends if it was cancelled meanwhile")
    func startFails() throws {
        var machine = try Self.machine(2, limit: 1)
        let error = DownloadError(.policy, "ftp")
        let actions = machine.handle(.startFailed(Self.id(1), error))
        #expect(actions.first == .store(.state(Self.id(1), .failed(error), attempts: 1)) && actions.starts == [2])
        _ = machine.handle(.cancel([Self.id(2)], keepingPartial: true))
        #expect(machine.handle(.startFailed(Self.id(2), error)).finished == [2])
        // One that was paused meanwhile stays paused, and has no failed run that is not stored.
        var paused = try Self.machine(1, limit: 1)
        _ = paused.handle(.pause([Self.id(1)]))
        #expect(paused.handle(.startFailed(Self.id(1), error)).isEmpty)
        #expect(paused.entries[Self.id(1)]?.record.attempts == 0)
    }

    @Test("Before an entry is in the group, the database has that it may have files")
    func begins() throws {
        var machine = Machine([try Self.record(1)], limit: 1)
        let actions = machine.handle(.begin)
        guard case .store(.begun(Self.id(1), _))? = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(actions.dropFirst() == [.start(Self.id(1))] && machine.entries[Self.id(1)]?.record.hasBegun == true)
    }

    // MARK: The end

    @Test("The end of the queue is no command of the user")
    func ends() throws {
        var machine = try Self.machine(2, limit: 1)
        _ = machine.handle(.end)
        for ending in [.paused(nil), .cancelled(Self.row(1, .cancelled))] as [Machine.Ending] {
            var ended = machine
            let actions = ended.handle(.ended(Self.id(1), ending)) + ended.handle(.removed(Self.id(1)))
            #expect(actions == [.remove(Self.id(1))])
            #expect(ended.entries[Self.id(1)]?.record.state == .queued)
        }
        var cancelling = try Self.machine(1, limit: 1, hasBegun: true)
        _ = cancelling.handle(.cancel([Self.id(1)], keepingPartial: false))
        _ = cancelling.handle(.end)
        // The files may still be there: the next run deletes them.
        #expect(cancelling.handle(.ended(Self.id(1), .cancelled(Self.row(1, .cancelled)))) == [.remove(Self.id(1))])
    }

    // MARK: Random events

    @Test("A hold pauses what runs and starts nothing, and changes no stored state")
    func hold() throws {
        var machine = Machine(try (1...3).map { try Self.record($0) }, limit: 2)
        _ = machine.handle(.begin)
        #expect(machine.handle(.hold(true)) == [.pause(Self.id(1)), .pause(Self.id(2))])
        #expect(machine.handle(.hold(true)).isEmpty)
        for number in 1...2 as ClosedRange<UInt64> {
            #expect(machine.handle(.ended(Self.id(number), .paused(nil))) == [.remove(Self.id(number))])
            #expect(machine.handle(.removed(Self.id(number))).isEmpty)
        }
        #expect(machine.entries.values.allSatisfy { $0.record.state == .queued && $0.phase == .idle })
        #expect(machine.handle(.hold(false)).starts == [1, 2])
    }

    @Test("A request is changed only if nobody else changed it, and a running download is told")
    func change() throws {
        var machine = Machine(try (1...2).map { try Self.record($0) }, limit: 1)
        _ = machine.handle(.begin)
        let old = try #require(machine.entries[Self.id(1)]?.record.request)
        let new = try Self.changed(old)
        let actions = machine.handle(.change(Self.id(1), from: old, to: new))
        #expect(actions == [.store(.request(Self.id(1), new)), .update(Self.id(1))])
        #expect(machine.handle(.change(Self.id(1), from: old, to: old)).isEmpty)
        let other = try #require(machine.entries[Self.id(2)]?.record.request)
        // One that has not begun can also be moved.
        let moved = try other.begun(at: "/b")
        #expect(machine.handle(.change(Self.id(2), from: other, to: moved)) == [.store(.request(Self.id(2), moved))])
    }

    /// The request with another priority.
    private static func changed(_ old: QueuedRequest) throws -> QueuedRequest {
        try Self.changed(old) { $0.priority = 0.25 }
    }

    private static func changed(
        _ old: QueuedRequest, _ change: (inout DownloadRequest) throws -> Void
    ) throws -> QueuedRequest {
        var request = old.complete(id: nil)
        try change(&request)
        return try QueuedRequest(request, path: try #require(request.destination.path), hasName: false)
    }

    @Test("A download continues as another request only if that one adds mirrors or differs in speed and own values")
    func continues() throws {
        let request = try Self.record(1).request
        let old = try Self.changed(request) { $0.mirrors = [try SourceURL("http://mirror/1")] }
        let same = try Self.changed(old) { request in
            request.priority = 0.25
            request.segments = .exactly(3)
            request.bytesPerSecond = 1000
            request.userInfo = ["a": "b"]
            request.mirrors.insert(try SourceURL("http://mirror/2"), at: 0)
        }
        #expect(old.continues(as: old) && old.continues(as: same))
        #expect(!same.continues(as: old))
        let changes: [(inout DownloadRequest) throws -> Void] = [
            { $0.source = try SourceURL("http://other/1") }, { $0.mirrors = [] },
            { $0.mirrors = [try SourceURL("http://user:secret@mirror/1")] },
            { $0.digests = [try #require(ExpectedDigest(.sha256, hex: String(repeating: "0", count: 64)))] },
            { $0.fields[.accept] = "text/plain" }, { $0.credentials = .bearer(token: "t") },
            { $0.part = DownloadOptions.Part(first: 1) }, { $0.lengthExpected = 7 }, { $0.onChange = .restart },
        ]
        for change in changes { #expect(!old.continues(as: try Self.changed(old, change))) }
    }

    /// A machine with one entry that runs, whose request was changed then, and the actions for the change.
    private static func outdated(
        _ state: QueueRecord.State = .queued, ifExists: DownloadOptions.ExistingFilePolicy = .verify
    ) throws -> (Machine, new: QueuedRequest, [Machine.Action]) {
        var record = try Self.record(1)
        record.request = try Self.changed(record.request) { $0.ifExists = ifExists }
        var machine = Machine([record], limit: 1)
        _ = machine.handle(.begin)
        if state == .paused { _ = machine.handle(.pause([Self.id(1)])) }
        if state.isCancelling { _ = machine.handle(.cancel([Self.id(1)], keepingPartial: true)) }
        let new = try Self.changed(record.request) { $0.source = try SourceURL("http://host/other") }
        let actions = machine.handle(.change(Self.id(1), from: record.request, to: new))
        return (machine, new, actions)
    }

    @Test("A running download whose request changes is paused, and starts again with the new one")
    func restarts() throws {
        var (machine, new, actions) = try Self.outdated()
        #expect(actions == [.store(.request(Self.id(1), new)), .pause(Self.id(1))])
        #expect(machine.handle(.ended(Self.id(1), .paused(nil))) == [.remove(Self.id(1))])
        #expect(machine.handle(.removed(Self.id(1))) == [.start(Self.id(1))])
        #expect(machine.entries[Self.id(1)]?.record.request == new)
        // From now on the download is one of this request.
        #expect(machine.handle(.ended(Self.id(1), .completed(Self.row(1)))).finished == [1])
    }

    @Test("How a download ends says nothing about a request that it was not started with")
    func outdatedEnds() throws {
        let error = DownloadError(.server, "404")
        for ending in [.completed(Self.row(1)), .failed(error, nil)] as [Machine.Ending] {
            var (machine, new, _) = try Self.outdated()
            // Also if another change follows that alone would not matter.
            let faster = try Self.changed(new)
            #expect(machine.handle(.change(Self.id(1), from: new, to: faster)).last == .update(Self.id(1)))
            #expect(machine.handle(.ended(Self.id(1), ending)) == [.remove(Self.id(1))])
            #expect(machine.handle(.removed(Self.id(1))) == [.start(Self.id(1))])
            #expect(machine.entries[Self.id(1)]?.record.attempts == 0)
            #expect(machine.handle(.ended(Self.id(1), .failed(error, nil))).count == 2)
            #expect(machine.entries[Self.id(1)]?.record.state == .failed(error))
        }
        var (failing, _, _) = try Self.outdated()
        #expect(failing.handle(.startFailed(Self.id(1), error)) == [.start(Self.id(1))])
    }

    @Test("A paused download whose request changes is not paused again, and stays paused if it completes all the same")
    func outdatedPaused() throws {
        var (machine, new, actions) = try Self.outdated(.paused)
        #expect(actions == [.store(.request(Self.id(1), new))])
        #expect(machine.handle(.ended(Self.id(1), .completed(Self.row(1)))) == [.remove(Self.id(1))])
        #expect(machine.handle(.removed(Self.id(1))).isEmpty)
        #expect(machine.entries[Self.id(1)]?.record.state == .paused)
        #expect(machine.handle(.resume([Self.id(1)])).starts == [1])
    }

    @Test("An entry that is cancelled does not end as complete with the file of an earlier request")
    func outdatedCancelled() throws {
        var (machine, _, _) = try Self.outdated()
        _ = machine.handle(.cancel([Self.id(1)], keepingPartial: true))
        #expect(machine.handle(.ended(Self.id(1), .completed(Self.row(1)))) == [.remove(Self.id(1))])
        let actions = machine.handle(.removed(Self.id(1)))
        guard actions.count == 1, case .store(.finish(Self.id(1), let row))? = actions.first else {
            Issue.record("\(actions)")
            return
        }
        #expect(row.outcome == .cancelled)
        // One that is being cancelled already is not changed.
        #expect(try Self.outdated(.cancelling(keepingPartial: true)).2.isEmpty)
    }

    @Test(
        "A file that may be that of an earlier request is not kept without a proof, unless the change asks for it",
        arguments: [.skip, .update, .newer, .verify, .overwrite] as [DownloadOptions.ExistingFilePolicy])
    func provesExisting(policy: DownloadOptions.ExistingFilePolicy) throws {
        let (machine, _, _) = try Self.outdated(ifExists: policy)
        let stored = try #require(machine.entries[Self.id(1)]?.record.request.request)
        #expect(stored.ifExists == (policy == .overwrite ? .overwrite : .verify))
        #expect(stored.source.string == "http://host/other")
        // One that has never run has no file.
        let waiting = try Self.changed(try Self.record(2).request) { $0.ifExists = policy }
        var (record, new) = (
            try Self.record(2), try Self.changed(waiting) { $0.source = try SourceURL("http://host/o") }
        )
        record.request = waiting
        var held = Machine([record], limit: 1, isHeld: true)
        #expect(held.handle(.change(Self.id(2), from: waiting, to: new)) == [.store(.request(Self.id(2), new))])
        // The change names the policy.
        record.hasBegun = true
        held = Machine([record], limit: 1, isHeld: true)
        new = try Self.changed(waiting) { $0.ifExists = policy == .skip ? .newer : .skip }
        #expect(held.handle(.change(Self.id(2), from: waiting, to: new)) == [.store(.request(Self.id(2), new))])
    }

    @Test("When its file gets a name, an entry keeps a change that came after the start, and cannot be moved any more")
    func begunKeepsChange() throws {
        var machine = Machine([try Self.record(1)], limit: 1)
        _ = machine.handle(.begin)
        let old = try #require(machine.entries[Self.id(1)]?.record.request)
        let new = try Self.changed(old)
        let path = try #require(new.request.destination.path)
        #expect(!machine.handle(.change(Self.id(1), from: old, to: new)).isEmpty)
        _ = machine.handle(.begun(Self.id(1), at: path))
        let begun = try #require(machine.entries[Self.id(1)]?.record.request)
        #expect(begun.request.priority == 0.25 && begun.request.destination == .file(path))
        let moved = try begun.begun(at: "/elsewhere")
        #expect(machine.handle(.change(Self.id(1), from: begun, to: moved)).isEmpty)
    }

    @Test("A machine that is created held starts nothing until the hold ends")
    func createdHeld() throws {
        var machine = Machine([try Self.record(1)], limit: 1, isHeld: true)
        #expect(machine.handle(.begin).isEmpty)
        #expect(machine.handle(.hold(false)).last == .start(Self.id(1)))
    }

    @Test("No entry is added if one of their IDs is taken")
    func taken() throws {
        var machine = Machine([try Self.record(1)], limit: 1)
        #expect(machine.handle(.add([try Self.record(2), try Self.record(1)], first: false)).isEmpty)
        #expect(machine.handle(.add([try Self.record(3), try Self.record(3)], first: false)).isEmpty)
        #expect(machine.order == [Self.id(1)])
    }

    /// What the changes leave in a database is what the machine has, so that a crash at any time loses nothing; and when
    /// the group reports what it does, no entry keeps its place in it or stays cancelling.
    @Test("The stored entries are those of the machine, in its order, and each gives its place away", arguments: 0..<40)
    func stored(seed: UInt64) throws {
        var generator = SplitMix64(seed: seed)
        var machine = Machine([], limit: 3)
        var table: [QueueEntry.ID: QueueRecord] = [:]
        var finished: Set<QueueEntry.ID> = []
        /// The entries in a model of the group, and what it is to do with each next.
        var group: [QueueEntry.ID: Machine.Action] = [:]
        func perform(_ actions: [Machine.Action]) {
            for action in actions {
                switch action {
                case .store(let change): Self.apply(change, to: &table, &finished)
                case .start(let id), .load(let id):
                    #expect(group[id] == nil)
                    group[id] = action
                case .update: continue
                case .pause(let id), .cancel(let id, _): if group[id] != nil { group[id] = action }
                // One that the group does not have any more is reported as removed, too.
                case .remove(let id): group[id] = action
                }
            }
            #expect(table == machine.entries.mapValues(\.record))
            #expect(table.values.sorted { $0.position < $1.position }.map(\.id) == machine.order)
            #expect(Set(table.values.map(\.position)).count == table.count)
            #expect(machine.activeCount == machine.entries.values.count { $0.phase == .active || $0.phase == .leaving })
            #expect(machine.entries.values.count { $0.phase == .active && $0.record.state == .queued } <= 3)
        }
        /// One step of the group with one of its downloads.
        func step(_ id: QueueEntry.ID) {
            let error = DownloadError(.network, "reset")
            let event: Machine.Event
            switch group[id] {
            case .start:
                let ends: [Machine.Event] = [
                    .ended(id, .completed(Self.row(id.number))), .ended(id, .failed(error, nil)),
                    .ended(id, .paused(nil)),
                    .blocked(id, by: group.keys.randomElement(using: &generator) ?? id), .startFailed(id, error),
                ]
                event = ends.randomElement(using: &generator) ?? .removed(id)
                if case .blocked(_, by: id) = event { return }
                if case .blocked = event { group[id] = nil }
                if case .startFailed = event { group[id] = nil }
                if case .ended(_, .completed) = event { group[id] = nil }
            case .pause: event = .ended(id, .paused(nil))
            case .cancel where Bool.random(using: &generator): event = .cancelFailed(id, error)
            case .cancel:
                event = .ended(id, .cancelled(Self.row(id.number, .cancelled)))
                group[id] = nil
            case .load:
                event = .cancelFailed(id, error)
                group[id] = nil
            case .remove, .store, .update, nil:
                event = .removed(id)
                group[id] = nil
            }
            perform(machine.handle(event))
        }
        var next: UInt64 = 1
        for _ in 0..<200 {
            let known = machine.order
            let id = known.randomElement(using: &generator) ?? Self.id(0)
            switch Int.random(in: 0..<14, using: &generator) {
            case 0, 1:
                let records = try (next..<next + 3).map {
                    try Self.record($0, hasBegun: Bool.random(using: &generator))
                }
                next += 3
                perform(machine.handle(.add(records, first: Bool.random(using: &generator))))
            case 2: perform(machine.handle(.pause([id])))
            case 3: perform(machine.handle(.resume([id])))
            case 4: perform(machine.handle(.cancel([id], keepingPartial: Bool.random(using: &generator))))
            case 5: perform(machine.handle(.move(id, to: Int.random(in: -1...known.count + 1, using: &generator))))
            // Always the same two places: the room between two positions ends.
            case 6: perform(machine.handle(.move(id, to: 1)))
            case 7: perform(machine.handle(.hold(Bool.random(using: &generator))))
            case 8:
                guard let old = machine.entries[id]?.record.request else { continue }
                let number = Int.random(in: 0..<4, using: &generator)
                let new =
                    switch number {
                    case 0: try old.begun(at: FilePath("/changed/\(id)"))
                    case 1: try Self.changed(old) { $0.retries = Int.random(in: 0..<9, using: &generator) }
                    case 2: try Self.changed(old) { $0.source = try SourceURL("http://host/\(next)") }
                    default: try Self.changed(old)
                    }
                perform(machine.handle(.change(id, from: old, to: new)))
            default:
                if let id = group.keys.sorted(by: { $0.number < $1.number }).randomElement(using: &generator) {
                    step(id)
                }
            }
        }
        perform(machine.handle(.pause(machine.order)))
        for _ in 0..<1000 where !group.isEmpty {
            if let id = group.keys.sorted(by: { $0.number < $1.number }).randomElement(using: &generator) { step(id) }
        }
        #expect(group.isEmpty && machine.activeCount == 0)
        #expect(machine.entries.values.allSatisfy { $0.phase == .idle && !$0.record.state.isCancelling })
    }

    private static func apply(
        _ change: QueueChange, to table: inout [QueueEntry.ID: QueueRecord], _ finished: inout Set<QueueEntry.ID>
    ) {
        switch change {
        case .insert(let record): #expect(table.updateValue(record, forKey: record.id) == nil)
        case .position(let id, let position): table[id]?.position = position
        case .state(let id, let state, let attempts):
            table[id]?.state = state
            table[id]?.attempts = attempts
        case .begun(let id, let request):
            table[id]?.request = request
            table[id]?.hasBegun = true
        case .request(let id, let request): table[id]?.request = request
        case .finish(let id, _): #expect(table.removeValue(forKey: id) != nil && finished.insert(id).inserted)
        }
    }
}

extension QueueStateMachine {
    fileprivate mutating func handle(_ event: Event) -> [Action] { self.handle(event, at: 1_700_000_000) }
}

extension [QueueStateMachine.Action] {
    /// The entries that are started, in order.
    fileprivate var starts: [UInt64] {
        self.compactMap { action in
            if case .start(let id) = action { id.number } else { nil }
        }
    }

    /// The entries that end, in order.
    fileprivate var finished: [UInt64] {
        self.compactMap { action in
            if case .store(.finish(let id, _)) = action { id.number } else { nil }
        }
    }
}
