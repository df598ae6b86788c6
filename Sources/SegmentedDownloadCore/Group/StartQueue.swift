/// The queue of downloads that wait to be started.
///
/// It has a first-in, first-out line for each of sixteen priority levels. The lines are served by stride scheduling, in
/// proportion to their level, so that urgent downloads start soon and others are not starved.
struct StartQueue: Hashable, Sendable {
    private struct Ticket: Hashable {
        let index: Int
        let number: Int
    }

    private struct Line: Hashable {
        let level: Int
        var tickets: [Ticket] = []
        var head = 0
        /// The number of tickets that are still valid.
        var live = 0
        /// The service received so far. The line with the lowest value is served next.
        var pass: Int
    }

    static let levels = 16

    /// Divisible by every level, so that sums are exact.
    private static let stride = 720_720

    /// The lines with waiting downloads, highest level first.
    private var lines: [Line] = []
    private struct Place: Hashable {
        let number: Int
        let level: Int
    }

    /// For each index, the number of its valid ticket and the level of its line.
    private var places: [Place?] = []
    private var numberNext = 0
    private var pass = 0
    private(set) var count = 0

    var isEmpty: Bool { self.count == 0 }

    static func level(of priority: Double) -> Int {
        min(max(Int((priority * Double(Self.levels)).rounded(.up)), 1), Self.levels)
    }

    /// Appends a download to the line of its priority.
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
        // A new line starts level with the others, without credit for the time it was empty.
        self.lines.insert(Line(level: level, pass: self.pass), at: line)
        return line
    }

    /// Removes a download if it waits.
    mutating func remove(_ index: Int) {
        guard index < self.places.count, let place = self.places[index],
            let line = self.lines.firstIndex(where: { $0.level == place.level })
        else { return }
        self.places[index] = nil
        self.count -= 1
        self.lines[line].live -= 1
        self.tidy(line)
    }

    /// Moves a waiting download directly before another one, into that one's line, or before the one that would be
    /// next.
    mutating func move(_ index: Int, before other: Int?) {
        guard self.waits(index), let target = other ?? self.head, target != index, self.waits(target) else { return }
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

    /// The download that would be next.
    var head: Int? {
        guard let line = self.lines.min(by: { $0.pass < $1.pass }) else { return nil }
        return line.tickets[line.head...].first { self.places[$0.index]?.number == $0.number }?.index
    }

    /// Removes and returns the next download.
    mutating func next() -> Int? {
        guard let line = self.lines.indices.min(by: { self.lines[$0].pass < self.lines[$1].pass }) else { return nil }
        while self.lines[line].head < self.lines[line].tickets.count {
            let ticket = self.lines[line].tickets[self.lines[line].head]
            self.lines[line].head += 1
            guard self.isValid(ticket) else { continue }
            self.served(ticket.index, of: line)
            return ticket.index
        }
        return nil
    }

    /// 256: the files that are examined for one that may start. More of one host in a row wait for it.
    private static let depth = 256

    /// The next download that may start.
    func first(where mayStart: (Int) -> Bool) -> Int? {
        for line in self.lines.sorted(by: { $0.pass < $1.pass }) {
            let tickets = line.tickets[line.head...].prefix(Self.depth)
            if let ticket = tickets.first(where: { self.isValid($0) && mayStart($0.index) }) { return ticket.index }
        }
        return nil
    }

    /// Removes a download that starts before its turn. Those before it keep their places.
    mutating func take(_ index: Int) {
        guard self.waits(index), let level = self.places[index]?.level,
            let line = self.lines.firstIndex(where: { $0.level == level })
        else { return }
        self.served(index, of: line)
    }

    private func isValid(_ ticket: Ticket) -> Bool { self.places[ticket.index]?.number == ticket.number }

    private mutating func served(_ index: Int, of line: Int) {
        self.places[index] = nil
        self.count -= 1
        self.pass = self.lines[line].pass
        self.lines[line].pass += Self.stride / self.lines[line].level
        self.lines[line].live -= 1
        self.tidy(line)
    }

    /// Removes an empty line, or invalid tickets from a line.
    private mutating func tidy(_ line: Int) {
        if self.lines[line].live == 0 {
            self.lines.remove(at: line)
            if self.lines.isEmpty { self.pass = 0 }
            return
        }
        // Sweeps only once most tickets are invalid, so that each ticket is moved a bounded number of times.
        guard self.lines[line].tickets.count > 2 * self.lines[line].live + Self.levels else { return }
        self.lines[line].tickets.removeSubrange(..<self.lines[line].head)
        self.lines[line].tickets.removeAll { self.places[$0.index]?.number != $0.number }
        self.lines[line].head = 0
    }
}
