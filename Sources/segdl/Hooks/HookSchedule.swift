/// Decides when hooks start: in the order in which they were added, a few at once, and none later because another hangs.
///
/// A hook has a turn until it ends or is overdue.
struct HookSchedule<Hook> {
    /// 4: a hook that waits for another computer does not delay the next ones, and four that unpack archives do not overload
    /// a disk.
    static var turnsMax: Int { 4 }
    /// 32 with the overdue ones: each blocks a thread, and hooks that never end do not use up the user's processes.
    static var runningMax: Int { 32 }

    private var waiting: ArraySlice<Hook> = []
    private var turns: Set<Int> = []
    private var overdue: Set<Int> = []
    private var numberNext = 0

    /// Whether no hook runs or waits.
    var isIdle: Bool { self.waiting.isEmpty && self.turns.isEmpty && self.overdue.isEmpty }

    mutating func add(_ hook: Hook) { self.waiting.append(hook) }

    /// The next hook to start, with its number; nil if none may start now.
    mutating func start() -> (number: Int, hook: Hook)? {
        guard self.turns.count < Self.turnsMax, self.turns.count + self.overdue.count < Self.runningMax,
            let hook = self.waiting.popFirst()
        else { return nil }
        defer { self.numberNext += 1 }
        self.turns.insert(self.numberNext)
        return (self.numberNext, hook)
    }

    /// Ends a hook's turn while it runs on.
    ///
    /// - Returns: Whether it was running and had a turn.
    mutating func passTurn(of number: Int) -> Bool {
        guard self.turns.remove(number) != nil else { return false }
        self.overdue.insert(number)
        return true
    }

    mutating func end(_ number: Int) {
        if self.turns.remove(number) == nil { self.overdue.remove(number) }
    }
}
