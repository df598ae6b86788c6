import HTTPTypes
import SegmentedDownloadCore
import Testing

/// The order in which downloads start, and the removal of downloads.
@Suite("Group order")
struct GroupOrderTests {
    /// A group that runs one download at a time; of the added ones the first runs.
    private static func group(of count: Int) -> GroupStateMachine {
        var limits = GroupStateMachine.Limits()
        limits.downloads = 1
        var machine = GroupStateMachine(limits: limits)
        for number in 0..<count {
            var settings = DownloadSettings()
            settings.host = "host"
            _ = machine.handle(.added(DownloadID(number), settings, seed: 1), now: .zero)
        }
        return machine
    }

    /// Ends each running download in turn; returns the order in which they ran.
    private static func turns(_ machine: GroupStateMachine) -> [Int] {
        var machine = machine
        var waiting = Set(0..<9).filter { machine.machine(DownloadID($0)) != nil }
        var order: [Int] = []
        while let running = waiting.first(where: { machine.machine(DownloadID($0))?.isSurveying == true }) {
            order.append(running)
            waiting.remove(running)
            let id = DownloadID(running)
            _ = machine.handle(.download(id, .storageFailed(DownloadError(.file, "enough"))), now: .zero)
        }
        return order
    }

    @Test(
        "A queued download that is moved starts in its new place, and the others keep their order")
    func moved() {
        var machine = Self.group(of: 5)
        #expect(Self.turns(machine) == [0, 1, 2, 3, 4])
        _ = machine.handle(.moved(DownloadID(3), before: nil), now: .zero)
        #expect(Self.turns(machine) == [0, 3, 1, 2, 4])
        _ = machine.handle(.moved(DownloadID(4), before: DownloadID(2)), now: .zero)
        #expect(Self.turns(machine) == [0, 3, 1, 4, 2])
        _ = machine.handle(.moved(DownloadID(3), before: DownloadID(2)), now: .zero)
        #expect(Self.turns(machine) == [0, 1, 4, 3, 2])
    }

    @Test("Moving a running download, or one before itself or an unknown one, changes nothing")
    func movedInVain() {
        var machine = Self.group(of: 4)
        let before = machine
        _ = machine.handle(.moved(DownloadID(0), before: DownloadID(3)), now: .zero)
        _ = machine.handle(.moved(DownloadID(2), before: DownloadID(2)), now: .zero)
        _ = machine.handle(.moved(DownloadID(2), before: DownloadID(7)), now: .zero)
        _ = machine.handle(.moved(DownloadID(7), before: nil), now: .zero)
        #expect(machine == before)
    }

    @Test("A download at rest is removed, another one is kept")
    func removed() {
        var machine = Self.group(of: 2)
        _ = machine.handle(.removed(DownloadID(0)), now: .zero)
        _ = machine.handle(.removed(DownloadID(1)), now: .zero)
        #expect(Self.turns(machine) == [0, 1])
        _ = machine.handle(.download(DownloadID(1), .pause), now: .zero)
        _ = machine.handle(.removed(DownloadID(1)), now: .zero)
        #expect(machine.machine(DownloadID(1)) == nil && Self.turns(machine) == [0])
    }

    @Test("The connections of a removed download are released when they close")
    func connectionsOfRemoved() {
        var machine = Self.group(of: 1)
        let id = DownloadID(0)
        let actions = machine.handle(.download(id, .surveyed(.nothing)), now: .zero)
        let leases = actions.compactMap { if case .fetch(_, let order) = $0 { order.lease } else { nil } }
        #expect(leases.count == 1 && machine.connections(id) == 1)
        // The disk fails before the response is written: the fetch is stopped, and still has its connection.
        let resource = RangeResponse(
            request: RangeRequest(),
            head: ResponseHead(status: 200, fields: [.contentLength: "5"]))
        _ = machine.handle(.download(id, .responded(leases[0], resource, suggestedName: nil)), now: .zero)
        _ = machine.handle(.download(id, .storageFailed(DownloadError(.file, "full"))), now: .zero)
        #expect(machine.machine(id)?.conclusion != nil)
        _ = machine.handle(.removed(id), now: .zero)
        #expect(machine.machine(id) == nil && !machine.isIdle)
        // They do not count as connections of the next download, which takes the same slot.
        var settings = DownloadSettings()
        settings.host = "host"
        let next = DownloadID(1)
        _ = machine.handle(.added(next, settings, seed: 1), now: .zero)
        _ = machine.handle(.download(next, .surveyed(.nothing)), now: .zero)
        #expect(machine.connections(next) == 1)
        _ = machine.handle(.download(id, .ended(leases[0], .stopped)), now: .zero)
        #expect(machine.connections(next) == 1 && !machine.isIdle)
    }

    @Test("A group's memory depends on the downloads it has now, not on all it has had")
    func placesTakenAgain() {
        var machine = Self.group(of: 3)
        for number in 0..<1000 {
            let (id, next) = (DownloadID(number), DownloadID(number + 3))
            #expect(machine.machine(id)?.isSurveying == true)
            _ = machine.handle(.download(id, .storageFailed(DownloadError(.file, "enough"))), now: .zero)
            _ = machine.handle(.removed(id), now: .zero)
            var settings = DownloadSettings()
            settings.host = "host"
            _ = machine.handle(.added(next, settings, seed: 1), now: .zero)
        }
        #expect(machine.placesCount == 3)
        for number in 1000..<1003 {
            #expect(!machine.isIdle)
            _ = machine.handle(
                .download(DownloadID(number), .storageFailed(DownloadError(.file, "enough"))), now: .zero)
        }
        #expect(machine.isIdle)
    }

    @Test("A download that waits gets its turn before those of less weight, once it has more")
    func priority() {
        var machine = Self.group(of: 4)
        _ = machine.handle(.priority(DownloadID(3), 1), now: .zero)
        #expect(Self.turns(machine).prefix(2) == [0, 3])
        #expect(machine.weight(DownloadID(3)) == 1 && machine.weight(DownloadID(2)) == 0.5)
        #expect(machine.weight(DownloadID(9)) == 0.5)
    }

    @Test("As many downloads are begun at once as may be, and the next one with the end of one of them")
    func atOnce() {
        var limits = GroupStateMachine.Limits()
        limits.downloads = 2
        var machine = GroupStateMachine(limits: limits)
        for number in 0..<4 { _ = machine.handle(.added(DownloadID(number), DownloadSettings(), seed: 1), now: .zero) }
        let begun = { (machine: GroupStateMachine) in
            (0..<4).filter { machine.machine(DownloadID($0))?.isSurveying == true }
        }
        #expect(begun(machine) == [0, 1])
        _ = machine.handle(.download(DownloadID(0), .storageFailed(DownloadError(.file, "enough"))), now: .zero)
        #expect(begun(machine) == [1, 2])
    }
}
