import Foundation

/// The course of a run of segdl, from its own events.
struct Timeline: Codable, Sendable {
    struct Point: Codable, Sendable {
        /// Seconds since the start of the run.
        var elapsed: Double
        var bytesDone: Int64
        var connections: Int
    }

    var points: [Point]

    /// The progress events in a run's output; `nil` if there are fewer than two.
    init?(_ output: String) {
        struct Record: Decodable {
            var event: String
            var time: Double?
            var bytesDone: Int64?
            var connections: Int?
        }
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        self.points = output.split(separator: "\n").compactMap { line in
            guard let record = try? decoder.decode(Record.self, from: Data(line.utf8)), record.event == "progress",
                let elapsed = record.time, let bytesDone = record.bytesDone,
                let connections = record.connections
            else { return nil }
            return Point(elapsed: elapsed, bytesDone: bytesDone, connections: connections)
        }
        if self.points.count < 2 { return nil }
    }

    /// Bytes per second between two points, with the time of the second.
    var rates: [(elapsed: Double, rate: Double)] {
        zip(self.points, self.points.dropFirst()).compactMap { first, second in
            let seconds = second.elapsed - first.elapsed
            return seconds > 0 ? (second.elapsed, Double(second.bytesDone - first.bytesDone) / seconds) : nil
        }
    }
}
