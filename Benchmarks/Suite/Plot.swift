/// Draws tables as SVG.
enum Plot {
    /// The pictures of a table, each with its name.
    static func pictures(of table: Table) -> [(name: String, picture: String)] {
        guard let parameter = table.parameter else {
            let courses = table.rows.compactMap { row in row.course.map { (row.name, $0) } }
            let timeline = courses.first.map { ("\(table.name)-timeline", Self.timeline(table, $0.0, $0.1)) }
            return [(table.name, Self.bars(table))] + (timeline.map { [$0] } ?? [])
        }
        let mebibytes = Double(table.length) / 1_048_576
        let figures: [(suffix: String, label: String, value: (Table.Row) -> Double?)] =
            parameter == "segments" || parameter == "GiB"
            ? [
                ("", "MiB/s", { row in row.median(\.wall).map { mebibytes / $0 } }),
                ("-cpu", "processor seconds per GiB", { row in row.median(\.cpu).map { $0 / mebibytes * 1024 } }),
                ("-memory", "peak memory, MiB", { row in row.median(\.peak) }),
            ]
            : [("", "seconds", { row in row.median(\.wall) })]
        return figures.map { ("\(table.name)\($0.suffix)", Self.lines(table, parameter, $0.label, $0.value)) }
    }

    private static let colours = [
        "#d1495b", "#00798c", "#edae49", "#30638e", "#8f8f8f", "#66a182", "#a05195", "#2e4057",
    ]
    private static let width = 720.0

    /// A page with dark text on a light background.
    private static func page(_ height: Double, _ title: String, _ body: [String]) -> String {
        """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(Self.width.text(0)) \(height.text(0))" font-family="sans-serif" font-size="13">
        <rect width="100%" height="100%" fill="#ffffff"/>
        <text x="16" y="24" font-size="15" font-weight="bold" fill="#222222">\(Self.escaped(title))</text>
        \(body.joined(separator: "\n"))
        </svg>

        """
    }

    private static func escaped(_ text: String) -> String {
        text.reduce(into: "") { result, character in
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            default: result.append(character)
            }
        }
    }

    private static func text(
        _ x: Double, _ y: Double, _ words: String, anchor: String = "start", colour: String = "#222222"
    ) -> String {
        "<text x=\"\(x.text(1))\" y=\"\(y.text(1))\" text-anchor=\"\(anchor)\" fill=\"\(colour)\">\(Self.escaped(words))</text>"
    }

    private static func line(_ from: (Double, Double), _ to: (Double, Double), _ style: String) -> String {
        "<line x1=\"\(from.0.text(1))\" y1=\"\(from.1.text(1))\" x2=\"\(to.0.text(1))\" y2=\"\(to.1.text(1))\" \(style)/>"
    }

    // MARK: One bar per contestant

    private static func bars(_ table: Table) -> String {
        let (left, right, top, step) = (140.0, 70.0, 48.0, 30.0)
        let medians = table.rows.map { $0.median(\.wall) }
        // Limits the axis: a very long bar would leave the others indistinguishable.
        let shown = medians.compactMap { $0 }.sorted()
        let longest = min(shown.last ?? 1, (shown.first ?? 1) * 12)
        let scale = (Self.width - left - right) / max(longest, 1e-9)
        var body: [String] = []
        for (index, row) in table.rows.enumerated() {
            let y = top + Double(index) * step
            body.append(Self.text(left - 10, y + 15, row.name, anchor: "end"))
            guard let wall = medians[index] else {
                body.append(
                    Self.text(left + 4, y + 15, row.runs.compactMap(\.failure).first ?? "not run", colour: "#8f8f8f"))
                continue
            }
            let colour =
                row.name.hasPrefix("segdl")
                ? Self.colours[0] : row.name.hasPrefix("limit") ? "#c8c8c8" : Self.colours[1]
            let length = min(wall, longest) * scale
            body.append(
                "<rect x=\"\(left.text(1))\" y=\"\(y.text(1))\" width=\"\(length.text(1))\" height=\"20\" fill=\"\(colour)\"/>"
            )
            let reach = [row.lowest(\.wall) ?? wall, row.highest(\.wall) ?? wall].map {
                left + min($0, longest) * scale
            }
            body.append(Self.line((reach[0], y + 10), (reach[1], y + 10), "stroke=\"#222222\""))
            body.append(Self.text(max(left + length, reach[1]) + 6, y + 15, "\(wall.text(wall < 0.1 ? 3 : 2)) s"))
        }
        var height = top + Double(table.rows.count) * step + 12
        if let ideal = table.ideal, ideal <= longest {
            let x = left + ideal * scale
            body.append(Self.line((x, top - 8), (x, height - 8), "stroke=\"#8f8f8f\" stroke-dasharray=\"4 3\""))
            body.append(Self.text(x, height + 8, "ideal \(ideal.text(2)) s", anchor: "middle", colour: "#8f8f8f"))
            height += 18
        }
        return Self.page(height, table.title, body)
    }

    // MARK: One run

    /// The rate and the number of connections of one run over time.
    private static func timeline(_ table: Table, _ name: String, _ timeline: Timeline) -> String {
        let (left, right, top, bottom) = (70.0, 70.0, 56.0, 330.0)
        let rates = timeline.rates.map { (elapsed: $0.elapsed, rate: $0.rate / 1_048_576) }
        let ideal = table.ideal.map { Double(table.length) / 1_048_576 / $0 }
        let end = timeline.points.last?.elapsed ?? 1
        let ticks = Self.ticks(max(rates.map(\.rate).max() ?? 1, ideal ?? 0))
        let most = Double(max(timeline.points.map(\.connections).max() ?? 1, 1))
        let x = { (elapsed: Double) in left + elapsed / end * (Self.width - left - right) }
        let y = { (share: Double) in bottom - share * (bottom - top) }
        let highest = ticks.last ?? 1
        var body = [
            Self.text(left, top - 12, "\(name): MiB/s", colour: Self.colours[0]),
            Self.text(
                Self.width - right, top - 12, "connections, at most \(Int(most))", anchor: "end",
                colour: Self.colours[3]),
        ]
        for tick in ticks {
            body.append(
                Self.line((left, y(tick / highest)), (Self.width - right, y(tick / highest)), "stroke=\"#e4e4e4\""))
            body.append(Self.text(left - 8, y(tick / highest) + 4, Self.shown(tick), anchor: "end", colour: "#555555"))
        }
        for tick in Self.ticks(end) where tick <= end {
            body.append(Self.text(x(tick), bottom + 20, Self.shown(tick), anchor: "middle", colour: "#555555"))
        }
        body.append(Self.text((left + Self.width - right) / 2, bottom + 42, "seconds", anchor: "middle"))
        if let ideal {
            body.append(
                Self.line(
                    (left, y(ideal / highest)), (Self.width - right, y(ideal / highest)),
                    "stroke=\"#8f8f8f\" stroke-dasharray=\"4 3\""))
        }
        let series: [(points: [(Double, Double)], colour: String)] = [
            (timeline.points.map { (x($0.elapsed), y(Double($0.connections) / most)) }, Self.colours[3]),
            (rates.map { (x($0.elapsed), y($0.rate / highest)) }, Self.colours[0]),
        ]
        for (points, colour) in series {
            let path = points.map { "\($0.0.text(1)),\($0.1.text(1))" }.joined(separator: " ")
            body.append("<polyline points=\"\(path)\" fill=\"none\" stroke=\"\(colour)\" stroke-width=\"2\"/>")
        }
        return Self.page(bottom + 56, table.title, body)
    }

    // MARK: One line per contestant

    private static func lines(
        _ table: Table, _ parameter: String, _ label: String, _ value: (Table.Row) -> Double?
    ) -> String {
        let (left, right, top, bottom) = (70.0, 130.0, 56.0, 330.0)
        var names: [String] = []
        for row in table.rows where !names.contains(row.name) { names.append(row.name) }
        let parameters = Array(Set(table.rows.compactMap(\.parameter))).sorted()
        let highest = table.rows.compactMap(value).max() ?? 1
        let ticks = Self.ticks(highest)
        let top0 = ticks.last ?? highest
        // Equal steps: each parameter is about double the previous one.
        let x = { (parameter: Double) in
            let place = Double(parameters.firstIndex(of: parameter) ?? 0) / Double(max(parameters.count - 1, 1))
            return left + place * (Self.width - left - right)
        }
        let y = { (value: Double) in bottom - value / top0 * (bottom - top) }
        var body = [Self.text(left, top - 12, label, colour: "#555555")]
        for tick in ticks {
            body.append(Self.line((left, y(tick)), (Self.width - right, y(tick)), "stroke=\"#e4e4e4\""))
            body.append(Self.text(left - 8, y(tick) + 4, Self.shown(tick), anchor: "end", colour: "#555555"))
        }
        for parameter in parameters {
            body.append(
                Self.text(x(parameter), bottom + 20, Self.shown(parameter), anchor: "middle", colour: "#555555"))
        }
        body.append(
            Self.text((left + Self.width - right) / 2, bottom + 42, parameter, anchor: "middle", colour: "#555555"))
        var labelled: [Double] = []
        for (index, name) in names.enumerated() {
            let colour = Self.colours[index % Self.colours.count]
            let points = table.rows.filter { $0.name == name }.compactMap { row in
                value(row).flatMap { value in row.parameter.map { (x($0), y(value)) } }
            }
            let path = points.map { "\($0.0.text(1)),\($0.1.text(1))" }.joined(separator: " ")
            body.append("<polyline points=\"\(path)\" fill=\"none\" stroke=\"\(colour)\" stroke-width=\"2.5\"/>")
            for point in points {
                body.append(
                    "<circle cx=\"\(point.0.text(1))\" cy=\"\(point.1.text(1))\" r=\"3.5\" fill=\"\(colour)\"/>")
            }
            guard let end = points.last else { continue }
            // Moves labels apart where lines end together.
            var place = end.1 + 4
            while labelled.contains(where: { abs($0 - place) < 15 }) { place += 15 }
            labelled.append(place)
            body.append(Self.text(end.0 + 10, place, name, colour: colour))
        }
        return Self.page(bottom + 56, table.title, body)
    }

    /// Ticks from 0 to above `highest`, in round steps.
    private static func ticks(_ highest: Double) -> [Double] {
        var step = 1e-4
        let factors = [2.0, 2.5, 2.0]
        var turn = 0
        while highest / step > 6 {
            step *= factors[turn % 3]
            turn += 1
        }
        return (0...Int((highest / step).rounded(.up))).map { Double($0) * step }
    }

    private static func shown(_ value: Double) -> String {
        value == value.rounded() ? value.text(0) : value.text(value < 0.1 ? 3 : 2)
    }
}
