/// The results of a contest.
struct Table: Codable, Sendable {
    struct Row: Codable, Sendable {
        var name: String
        /// The value on the other axis, in a series of contests.
        var parameter: Double?
        var runs: [Run] = []

        /// The runs that count.
        private var good: [Run] { self.runs.filter { $0.failure == nil } }

        /// The median of a figure over the runs that count; `nil` if fewer than half do.
        func median(_ figure: (Run) -> Double) -> Double? {
            guard self.good.count * 2 > self.runs.count else { return nil }
            let values = self.good.map(figure).sorted()
            return values[(values.count - 1) / 2]
        }

        /// The course of the last run that counts.
        var course: Timeline? { self.good.last?.timeline }

        func lowest(_ figure: (Run) -> Double) -> Double? { self.good.map(figure).min() }
        func highest(_ figure: (Run) -> Double) -> Double? { self.good.map(figure).max() }
    }

    var name: String
    var title: String
    /// In bytes.
    var length: Int64
    /// In seconds.
    var ideal: Double?
    /// The name of the parameter, in a series of contests.
    var parameter: String?
    var rows: [Row]

    /// One line per row, with medians.
    var text: String {
        let mebibytes = Double(self.length) / 1_048_576
        var lines = [self.title + (self.ideal.map { ", ideal \($0.text(2)) s" } ?? "")]
        let parameterWidth = self.parameter.map { $0.count + 2 } ?? 0
        let width = (self.rows.map(\.name.count).max() ?? 0) + 2
        lines.append(
            "".padded(to: width) + (self.parameter ?? "").leftPadded(to: parameterWidth)
                + "    wall s   lowest  highest   x best    MiB/s  CPU s/GiB  peak MiB  extra %  requests  429  conns")
        let best = self.rows.filter { !$0.name.hasPrefix("limit") }.compactMap { $0.median(\.wall) }.min() ?? 1
        for row in self.rows {
            let head =
                row.name.padded(to: width)
                + (row.parameter.map { self.shown($0) } ?? "").leftPadded(to: parameterWidth)
            guard let wall = row.median(\.wall) else {
                lines.append(head + "    " + (row.runs.compactMap(\.failure).first ?? "no run"))
                continue
            }
            let base = self.parameter == nil ? self.ideal ?? best : best
            let extra = row.median { Double($0.sent - self.length) / Double(max(self.length, 1)) * 100 } ?? 0
            var cells = [
                wall.text(3).leftPadded(to: 10), (row.lowest(\.wall) ?? 0).text(3).leftPadded(to: 9),
                (row.highest(\.wall) ?? 0).text(3).leftPadded(to: 9), (wall / base).text(2).leftPadded(to: 9),
                (mebibytes / wall).text(1).leftPadded(to: 9),
                ((row.median(\.cpu) ?? 0) / mebibytes * 1024).text(2).leftPadded(to: 11),
                (row.median(\.peak) ?? 0).text(1).leftPadded(to: 10), extra.text(2).leftPadded(to: 9),
                "\(Int(row.median { Double($0.requests) } ?? 0))".leftPadded(to: 10),
                "\(Int(row.median { Double($0.rejected) } ?? 0))".leftPadded(to: 5),
            ]
            let connections = row.runs.compactMap(\.connections).sorted()
            cells.append(connections.isEmpty ? "" : "\(connections[(connections.count - 1) / 2])".leftPadded(to: 7))
            let failed = row.runs.count { $0.failure != nil }
            if failed > 0 { cells.append("  \(failed) failed: \(row.runs.compactMap(\.failure)[0])") }
            lines.append(head + cells.joined())
        }
        return lines.joined(separator: "\n")
    }

    private func shown(_ value: Double) -> String { value == value.rounded() ? "\(Int(value))" : value.text(2) }

    /// Combines contests that differ in one parameter.
    static func series(_ name: String, _ title: String, parameter: String, _ tables: [(value: Double, table: Table)])
        -> Table
    {
        var rows: [Row] = []
        for (value, table) in tables {
            for row in table.rows {
                var row = row
                row.parameter = value
                rows.append(row)
            }
        }
        return Table(
            name: name, title: title, length: tables.first?.table.length ?? 0, parameter: parameter, rows: rows)
    }
}
