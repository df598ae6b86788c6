import ArgumentParser
import Foundation
import Origin
import SegmentedDownloadCore

/// Kills the background service at random moments, and starts it again. What it has acknowledged stays, and all files
/// arrive.
struct ServiceKills: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Kill the background service at random moments, and start it again.")

    @OptionGroup var options: LabOptions

    @Option(help: "Number of kills.")
    var kills = 200

    func run() async throws {
        try await Lab.run(self.options) { lab in
            let report = Report("service-kills")
            let count = min(self.options.slice.of(Array(0..<self.kills)).count, self.options.limit)
            // A slice of the kills needs that share of the bytes.
            let largest = max((1 << 30) * Int64(count) / Int64(max(self.kills, 1)), 16 << 20)
            let slice = self.options.slice
            let session = ServiceSession(
                try ServiceBench(lab, name: "kills"), options: Trial.daemonOptions,
                seed: self.options.seed &* 1_000_003 &+ UInt64(slice.index), report: report,
                replay: "segdl-crash service-kills --kills \(self.kills) --seed \(self.options.seed) "
                    + "--slice \(slice.defaultValueDescription)")
            do {
                try await Trial(session, kills: count, largest: largest).run()
            } catch {
                session.violation("\(error)")
            }
            try report.conclude(atLeast: "kills")
        }
    }
}

/// A queue of twenty large and small files, and of those that are added on the way.
private final class Trial {
    enum Moment: String, CaseIterable {
        case answered = "right after an answer"
        case fetching = "after some bytes"
        case commanded = "during a command"
        case finishing = "around the end of a file"
        case starting = "during a start"

        /// Their order: a short run has one of each kind, and a long one has more of those that take little time.
        static let turns: [Self] = [
            .answered, .fetching, .commanded, .finishing, .starting, .answered, .commanded, .fetching,
        ]
    }

    /// 12 files at once, so that small ones pass while the seven longest run; 16 connections, of which each of those
    /// gets at least one.
    static let daemonOptions = ["-j", "12", "--max-connections", "16", "--max-connection-per-server", "16"]
    /// 1 MiB a second for each connection: little of what was sent is still on its way, and 2 GiB last for 200 kills.
    private static let slow = "rate=1M"
    /// A file that is kept only as a whole must arrive between two kills, which are about a second apart.
    private static let fast = "rate=8M"
    /// Files of this length are complete before they have a manifest.
    private static let fastLengthMax: Int64 = 8 << 20
    /// A kill comes after this time even if fewer bytes were sent than were drawn.
    private static let waitMax: Duration = .seconds(5)

    private let session: ServiceSession
    private let kills: Int
    private let largest: Int64
    private var traffic = ServiceTraffic()

    init(_ session: ServiceSession, kills: Int, largest: Int64) {
        self.session = session
        self.kills = kills
        self.largest = largest
    }

    private var log: OriginLog { self.session.bench.lab.origin.log }

    func run() async throws {
        self.session.pending = self.files().shuffled(using: &self.session.generator)
        for number in 0..<self.kills {
            let moment = Moment.turns[number % Moment.turns.count]
            self.session.moment = "kill \(number) \(moment.rawValue)"
            try await self.session.withDaemon { try await self.live($0, until: moment) }
            self.session.report.count("kills")
            self.session.report.count("kills \(moment.rawValue)")
            self.session.checkNames()
        }
        self.session.moment = "after \(self.kills) kills"
        try await self.session.withDaemon { daemon in
            try await self.session.begin(daemon)
            // An hour: 2 GiB at the rate of a single connection.
            try await self.session.settle(atMost: .seconds(3600))
        }
        try self.conclude()
    }

    /// Twenty files whose lengths grow from 1 KiB to the largest by the same factor; two have the same URL.
    private func files() -> [ServiceFile] {
        let steps = 18
        let factor = pow(Double(self.largest) / 1024, 1 / Double(steps))
        var files = (0...steps).map { step in
            let length = Int64((1024 * pow(factor, Double(step))).rounded())
            // In the middle, so that they fit between two kills, and are not over at once.
            let serving: ServiceFile.Serving = step == 10 ? .unknownLength : step == 11 ? .whole : .ranges
            let segments = step == steps ? ["-s", "8"] : step.isMultiple(of: 2) ? ["-s", "4"] : []
            let namings: [ServiceFile.Naming] = [.option, .url, .response]
            return self.session.newFile(
                length: length, pace: Self.pace(length, serving), naming: namings[step % namings.count],
                serving: serving, options: segments)
        }
        files.append(files[12].twin)
        return files
    }

    private static func pace(_ length: Int64, _ serving: ServiceFile.Serving) -> String {
        length > Self.fastLengthMax && serving == .ranges ? Self.slow : Self.fast
    }

    /// The next file to add: one of the first twenty, or a further one.
    private func nextFile() -> ServiceFile {
        if !self.session.pending.isEmpty { return self.session.pending.removeFirst() }
        guard Int.random(in: 0..<4, using: &self.session.generator) == 0 else { return self.smallFile() }
        let length = Int64.random(in: 2 << 20...16 << 20, using: &self.session.generator)
        return self.session.newFile(length: length, pace: Self.pace(length, .ranges), isVictim: true)
    }

    private func smallFile() -> ServiceFile {
        let length = Int64.random(in: 1 << 10...256 << 10, using: &self.session.generator)
        return self.session.newFile(length: length, pace: Self.fast)
    }

    // MARK: One run of the daemon

    private func live(_ daemon: ServiceDaemon, until moment: Moment) async throws {
        let session = self.session
        if moment == .starting {
            await session.waitWithinStart()
            return self.kill(daemon)
        }
        try await session.begin(daemon)
        for _ in 0..<min(session.pending.count, 4) { try await session.issue(.add(self.nextFile())) }
        for _ in 0..<Int.random(in: 0..<3, using: &session.generator) { try await session.issue(self.nextCommand()) }
        switch moment {
        case .starting: break
        case .commanded:
            return try await session.issue(self.nextCommand(), trustsLateAnswer: true) { self.kill(daemon) }
        case .answered:
            try await session.issue(self.nextCommand())
            await self.sleep(upTo: .milliseconds(4))
        case .fetching: await self.waitForBytes()
        case .finishing:
            let file = self.smallFile()
            try await session.issue(.add(file, first: true))
            let log = self.log
            await within(Self.waitMax) { await log.waitForBytes(sent: file.length, path: file.path) }
            // Renaming the file and writing the history take about this long.
            await self.sleep(upTo: .milliseconds(40))
        }
        self.kill(daemon)
    }

    private func nextCommand() -> ServiceCommand { self.session.draw() ?? .add(self.nextFile()) }

    /// Waits for a random number of bytes, such that those that are left last for the kills that are left.
    private func waitForBytes() async {
        let snapshot = self.log.snapshot()
        let sums = ServiceTraffic.sums(snapshot)
        let left = self.session.ledger.open(.run).reduce(Int64(0)) { sum, entry in
            sum + max(entry.file.length - (sums[entry.file.path]?.sent ?? 0), 0)
        }
        // Nothing more would be sent.
        guard left > 0 else { return }
        let turnsLeft = Int64(max((self.kills - self.traffic.kills) / 4, 1))
        let most = max(2 * left / turnsLeft, 256 << 10)
        let target = snapshot.bytesSent + Int64.random(in: 1...most, using: &self.session.generator)
        let log = self.log
        await within(Self.waitMax) { await log.waitForBytes(sent: target) }
        await self.sleep(upTo: .milliseconds(4))
    }

    /// A random moment.
    private func sleep(upTo limit: Duration) async {
        try? await Task.sleep(for: limit * Double.random(in: 0..<1, using: &self.session.generator))
    }

    private func kill(_ daemon: ServiceDaemon) {
        let unfinished = (self.session.ledger.filesOpen + self.session.pending).filter { !self.session.exists($0) }
        self.traffic.noteKill(self.log.snapshot(), unfinished: unfinished)
        daemon.kill()
    }

    // MARK: The end

    private func conclude() throws {
        let session = self.session
        session.checkNames()
        let (completed, cancelled) = (session.ledger.ended("completed"), session.ledger.ended("cancelled"))
        for entry in completed where !session.exists(entry.file) {
            session.violation("\(entry.file) is complete, and not there")
        }
        // A cancelled download may have completed just before.
        let expected = Set((completed + cancelled).map(\.file.name))
        for name in try session.namesOfEnded() where !expected.contains(name) {
            session.violation("\(name) is left")
        }
        session.report.count("files complete", completed.count)
        session.report.count("files cancelled", cancelled.count)
        let excess = self.traffic.conclude(
            self.log.snapshot(), completed: completed.map(\.file), cancelled: cancelled.map(\.file), session.report)
        if let excess { session.violation(excess) }
    }
}
