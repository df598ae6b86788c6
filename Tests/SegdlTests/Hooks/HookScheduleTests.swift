import Testing

@testable import segdl

/// When hooks start.
@Suite struct HookScheduleTests {
    private static func started(_ schedule: inout HookSchedule<Int>) -> [Int] {
        var hooks: [Int] = []
        while let (_, hook) = schedule.start() { hooks.append(hook) }
        return hooks
    }

    @Test("Four hooks run at once, started in the order in which they were added")
    func order() {
        var schedule = HookSchedule<Int>()
        #expect(schedule.isIdle)
        for hook in 0..<7 { schedule.add(hook) }
        #expect(Self.started(&schedule) == [0, 1, 2, 3])
        schedule.end(2)
        #expect(Self.started(&schedule) == [4])
        for number in [0, 1, 3, 4] { schedule.end(number) }
        #expect(Self.started(&schedule) == [5, 6] && !schedule.isIdle)
        for number in [5, 6] { schedule.end(number) }
        #expect(schedule.isIdle)
    }

    @Test("A hook that is overdue runs on, and another one starts")
    func overdue() {
        var schedule = HookSchedule<Int>()
        for hook in 0..<6 { schedule.add(hook) }
        #expect(Self.started(&schedule) == [0, 1, 2, 3])
        let passes1 = schedule.passTurn(of: 1)
        #expect(passes1)
        let passes2 = schedule.passTurn(of: 1)
        #expect(!passes2)
        #expect(Self.started(&schedule) == [4])
        // Its turn is over already, so that its end gives none.
        schedule.end(1)
        #expect(Self.started(&schedule).isEmpty)
        schedule.end(0)
        let passes3 = schedule.passTurn(of: 0)
        #expect(!passes3)
        #expect(Self.started(&schedule) == [5])
    }

    @Test("Not more than 32 hooks run at once, even if all of them hang")
    func hanging() {
        var schedule = HookSchedule<Int>()
        for hook in 0..<40 { schedule.add(hook) }
        var running: [Int] = []
        while true {
            let started = Self.started(&schedule)
            if started.isEmpty { break }
            running += started
            for number in started { _ = schedule.passTurn(of: number) }
        }
        #expect(running == Array(0..<32))
        schedule.end(7)
        #expect(Self.started(&schedule) == [32])
    }
}
