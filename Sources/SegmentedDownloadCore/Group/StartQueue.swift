/// Downloads that wait to be started, in the order in which their turn comes.
///
/// There is a line for each of sixteen levels of priority, first come, first served within it. The lines take turns in
/// proportion to their level, so that what is urgent comes soon, and what is not comes too.
struct StartQueue: Hashable, Sendable {
    private struct Ticket: Hashable {
        let index: Int
        let number: Int
    }

    private struct Line: Hashable {
        let level: Int
        var tickets: [Ticket] = []
        var head = 0
        /// Tickets that have not been given back.
        var live = 0
        /// What it has been served so far; the line with the least is next.
        var pass: Int
    }

    static let levels = 16

    /// Divisible by every level, so that sums stay exact.
    private static let stride = 720_720

    /// At most as many as there are levels, the highest first.
    private var lines: [Line] = []
    private struct Place: Hashable {
        let number: Int
        let level: Int
    }

    /// For each index the number of its valid ticket and the level it waits at.
    private var places: [Place?] = []
    private var numberNext = 0
    private var pass = 0
    private(set) var count = 0

    var isEmpty: Bool { self.count == 0 }

    static func level(of priority: Double) -> Int {
        min(max(Int((priority * Double(Self.levels)).rounded(.up)), 1), Self.levels)
    }

    /// Puts a download at the end of its line.
    mutating func add(_ index: Int, priority: Double) {
        self.remove(index)
        let level = Self.level(of: priority)
        let line = self.line(level)
        if self.places.count <= index {
            self.places += Array(repeating: nil, count: index + 1 - self.places.count)
        }
        self.places[index] = Place(number: self.numberNext, level: level)
        self.lines[line].tickets.append(Ticket(index: index, number: self.numberNext))
        self.lines[line].live += 1
        self.numberNext += 1
        self.count += 1
    }

    private mutating func line(_ level: Int) -> Int {
        if let line = self.lines.firstIndex(where: { $0.level == level }) { return line }
        let line = self.lines.firstIndex { $0.level < level } ?? self.lines.endIndex
        // One that was empty has saved up nothing.
        self.lines.insert(Line(level: level, pass: self.pass), at: line)
        return line
    }

    /// Takes a download out, if it waits.
    mutating func remove(_ index: Int) {
        guard index < self.places.count, let place = self.places[index],
            let line = self.lines.firstIndex(where: { $0.level == place.level })
        else { return }
        self.places[index] = nil
        self.count -= 1
        self.lines[line].live -= 1
        self.tidy(line)
    }

    /// Takes one that waits before another that does, into that one's line, or to where the next one is taken from.
    mutating func move(_ index: Int, before other: Int?) {
        guard self.waits(index), let target = other ?? self.first, target != index, self.waits(target) else { return }
        self.remove(index)
        guard let place = self.places[target],
            let line = self.lines.firstIndex(where: { $0.level == place.level }),
            let position = self.lines[line].tickets.firstIndex(where: {
                $0.index == target && $0.number == place.number
            })
        else { return }
        self.places[index] = Place(number: self.numberNext, level: place.level)
        self.lines[line].tickets.insert(Ticket(index: index, number: self.numberNext), at: position)
        self.lines[line].live += 1
        self.numberNext += 1
        self.count += 1
    }

    private func waits(_ index: Int) -> Bool { index < self.places.count && self.places[index] != nil }

    /// The download whose turn comes next.
    private var first: Int? {
        guard let line = self.lines.min(by: { $0.pass < $1.pass }) else { return nil }
        return line.tickets[line.head...].first { self.places[$0.index]?.number == $0.number }?.index
    }

    /// The download whose turn it is, taken out.
    mutating func next() -> Int? {
        guard let line = self.lines.indices.min(by: { self.lines[$0].pass < self.lines[$1].pass }) else { return nil }
        while self.lines[line].head < self.lines[line].tickets.count {
            let ticket = self.lines[line].tickets[self.lines[line].head]
            self.lines[line].head += 1
            guard self.places[ticket.index]?.number == ticket.number else { continue }
            self.places[ticket.index] = nil
            self.count -= 1
            self.pass = self.lines[line].pass
            self.lines[line].pass += Self.stride / self.lines[line].level
            self.lines[line].live -= 1
            self.tidy(line)
            return ticket.index
        }
        return nil
    }

    /// Drops what is no use any more.
    private mutating func tidy(_ line: Int) {
        if self.lines[line].live == 0 {
            self.lines.remove(at: line)
            if self.lines.isEmpty { self.pass = 0 }
            return
        }
        // Tickets given back or used are swept away once they are the most, so that each is moved a bounded number of times.
        guard self.lines[line].tickets.count > 2 * self.lines[line].live + Self.levels else { return }
        self.lines[line].tickets.removeSubrange(..<self.lines[line].head)
        self.lines[line].tickets.removeAll { self.places[$0.index]?.number != $0.number }
        self.lines[line].head = 0
    }
}
