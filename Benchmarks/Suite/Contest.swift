import Foundation

/// The same work for several programs, in turn, for several rounds.
struct Contest {
    /// The name of the work.
    var name: String
    var title: String
    /// Bytes to fetch.
    var length: Int64
    /// Seconds that the path itself needs.
    var ideal: Double?
    var server: any Server
    /// Rounds that do not count, to warm the caches.
    var warmUps = 0
    /// A run that takes longer fails.
    var limit = Duration.seconds(120)
    /// Arguments put before a command, to run it in another namespace.
    var prefix: [String] = []
    /// What is wrong with the files in the directory; `nil` if nothing is.
    var check: @Sendable (_ directory: String) throws -> String?

    struct Contestant {
        var name: String
        /// The command that fetches into a directory.
        var command: (_ directory: String) -> [String]
    }

    func run(_ contestants: [Contestant], _ lab: Lab) async throws -> Table {
        var rows = contestants.map { Table.Row(name: $0.name) }
        for round in 0..<(self.warmUps + lab.rounds) {
            for (index, contestant) in contestants.enumerated() {
                let run = try await self.run(contestant, lab)
                if round >= self.warmUps || run.failure != nil { rows[index].runs.append(run) }
            }
        }
        return Table(name: self.name, title: self.title, length: self.length, ideal: self.ideal, rows: rows)
    }

    private func run(_ contestant: Contestant, _ lab: Lab) async throws -> Run {
        let directory = try lab.empty("out")
        // The unsynced bytes of one program must not slow the next.
        sync()
        try await self.server.begin()
        let figures = lab.path("figures")
        try? FileManager.default.removeItem(atPath: figures)
        let command = self.prefix + [lab.tools, "measure", figures] + contestant.command(directory)
        let status = try await lab.run(command, limit: self.limit)
        let counts = try await self.server.counts()
        var run = Run(figures: (try? String(contentsOfFile: figures, encoding: .utf8)) ?? "", counts)
        run.connections = Run.connections(in: lab.output)
        run.timeline = Timeline(lab.output)
        switch status {
        case nil: run.failure = "not done within \(Int(self.limit / .seconds(1))) s"
        case 0?: run.failure = try self.check(directory)
        case let status?: run.failure = "exit \(status) \(lab.lastWords)"
        }
        return run
    }
}

extension Contest {
    /// A program, or none for one of segdl's own tools, and the command that fetches into a directory.
    typealias Command = (name: String, program: Client.Program?, command: (_ directory: String) -> [String])

    /// The installed contestants of these.
    static func contestants(_ commands: [Command], _ lab: Lab) -> [Contestant] {
        commands.filter { Client(name: $0.name, program: $0.program) { _, _ in [] }.isPresent(in: lab) }
            .map { Contestant(name: $0.name, command: $0.command) }
    }

    /// The installed contestants, for one file.
    static func contestants(_ clients: [Client], _ lab: Lab, url: String, trust: String? = nil) -> [Contestant] {
        clients.filter { $0.isPresent(in: lab) }.map { client in
            Contestant(name: client.name) { directory in
                client.command(lab, Client.Transfer(url: url, output: "\(directory)/file", trust: trust))
            }
        }
    }
}

/// The figures of one run.
struct Run: Codable, Sendable {
    /// Seconds from start to end.
    var wall = 0.0
    /// Seconds of processor time.
    var cpu = 0.0
    /// The peak memory of its largest process, in MiB.
    var peak = 0.0
    /// Bytes of body that the origin sent.
    var sent: Int64 = 0
    var requests = 0
    /// Answers with 429 or 503.
    var rejected = 0
    /// The number of connections in the second half, from segdl's own events.
    var connections: Int?
    /// The course of a run of segdl; `nil` for other programs and for short runs.
    var timeline: Timeline?
    /// Why the run does not count.
    var failure: String?

    init(figures: String, _ counts: ServerCounts) {
        let numbers = figures.split(separator: " ").compactMap {
            Double($0.trimmingCharacters(in: .whitespacesAndNewlines))
        }
        if numbers.count == 4 {
            self.wall = numbers[0]
            self.cpu = numbers[1] + numbers[2]
            self.peak = numbers[3] / 1024
        }
        self.sent = counts.bytes
        self.requests = counts.requests
        self.rejected = counts.rejected
    }

    /// The median of the numbers of connections in the second half of the progress events.
    static func connections(in output: String) -> Int? {
        let told = output.split(separator: "\n").compactMap { line -> Int? in
            guard line.contains("\"event\":\"progress\""), let place = line.range(of: "\"connections\":") else {
                return nil
            }
            return Int(line[place.upperBound...].prefix { $0.isNumber })
        }
        let late = told.suffix((told.count + 1) / 2).dropLast().sorted()
        return late.isEmpty ? nil : late[late.count / 2]
    }
}
