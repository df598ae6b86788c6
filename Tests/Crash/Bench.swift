import Foundation
import Origin
import Synchronization
import TestSupport

/// One destination, the faults applied to it, and the checks of what it holds.
struct Bench: Sendable {
    let lab: Lab
    let folder: String
    /// Each case has a path of its own, because the origin has counts and state for each path.
    let name: String

    static let fileName = "f.bin"

    init(_ lab: Lab, name: String, files: String? = nil) throws {
        self.lab = lab
        self.name = name
        self.folder = "\(lab.root)/\(name)"
        self.files = files ?? "\(self.folder)/files"
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: true)
        try FileManager.default.createDirectory(atPath: self.files, withIntermediateDirectories: true)
    }

    let files: String
    var trace: String { "\(self.folder)/trace" }

    func path(_ role: Role) -> String { role.path(in: self.files) }

    // MARK: Running

    func url(_ scenario: Scenario, _ query: String) -> String {
        let path = "/\(scenario.size)/\(self.name)/\(scenario.isNamedByResponse ? "download" : Self.fileName)"
        return self.lab.origin.url(query.isEmpty ? path : "\(path)?\(query)")
    }

    /// The command line of the tested program.
    func command(_ scenario: Scenario, query: String? = nil, more: [String] = []) -> [String] {
        let target = scenario.isNamedByResponse ? ["-d", self.files] : ["-o", self.path(.destination)]
        return [self.lab.segdl, "-q"] + scenario.options + more + target
            + [self.url(scenario, query ?? scenario.query)]
    }

    func run(
        _ command: [String], environment: [String: String] = [:],
        during: @escaping @Sendable (Child) async -> Void = { _ in }
    ) async throws -> Child.Outcome {
        try await Child.run(command, log: "\(self.folder)/log", environment: environment, during: during)
    }

    func run(_ scenario: Scenario, _ injection: Injection) async throws -> Child.Outcome {
        try await self.run(injection.tracing(self.command(scenario), scenario, on: self))
    }

    /// Creates what the scenario starts with.
    func begin(_ scenario: Scenario) async throws {
        var earlier = scenario
        earlier.options = ["-s", "3"]
        switch scenario.beginning {
        case .nothing: break
        case .otherFile: try Data("the user's own".utf8).write(to: URL(fileURLWithPath: self.path(.destination)))
        case .paused:
            // On a busy machine little may have been read before the pause; a pause that early leaves nothing.
            for _ in 0..<10 where !self.exists(.manifest) {
                try await self.interrupt(earlier, with: SIGINT, expecting: 130)
            }
            guard self.exists(.manifest) else { throw SetupFailure("ten interrupted runs left no manifest") }
        case .killed: try await self.interrupt(earlier, with: SIGKILL, expecting: -SIGKILL)
        case .complete:
            let last = Injection(call: "renameat2", role: .part, occurrence: 1, effect: .kill)
            let outcome = try await self.run(earlier, last)
            guard outcome.wasKilled else { throw SetupFailure("the run did not reach renameat2: \(outcome)") }
        }
    }

    /// Stops a run in the middle, after its connections have stalled for good.
    private func interrupt(_ scenario: Scenario, with signal: Int32, expecting status: Int32) async throws {
        let each = scenario.length / 5
        // One or two connections are certain: no segment is shorter than 1 MiB, and the last may end before it stalls.
        let connections: Int64 = scenario.length > 8 << 20 ? 2 : 1
        // Limits the rate; otherwise everything is sent before the first byte is read.
        let stall = "rate=8M&stall-after=\(each):all"
        let query = scenario.beginningQuery.isEmpty ? stall : "\(scenario.beginningQuery)&\(stall)"
        let path = "/\(scenario.size)/\(self.name)/"
        let sent = self.lab.origin.log.snapshot(path: path).bytesSent
        let isSignalled = Mutex(false)
        let outcome = try await self.run(self.command(scenario, query: query)) { child in
            await self.lab.origin.log.waitForBytes(sent: sent + connections * each, path: path)
            guard !Task.isCancelled else { return }
            isSignalled.withLock { $0 = true }
            child.signal(signal)
        }
        guard outcome.status == status else {
            let requests = self.lab.origin.log.snapshot(path: path).requests.map {
                "\($0.range ?? "whole") \($0.status) \($0.bytesSent) at \($0.time)"
            }
            let cause = isSignalled.withLock { $0 } ? "signal \(signal)" : "stalling"
            throw SetupFailure("\(cause) ended with \(outcome): \(requests.joined(separator: ", "))")
        }
    }

    /// A case that could not be set up, which proves nothing about the command.
    struct SetupFailure: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    // MARK: Checks

    enum Destination: Hashable { case absent, right, other, wrong(at: Int64) }

    /// What the destination holds; the final name may appear only with the right content.
    func destination(_ scenario: Scenario) -> Destination {
        let path = self.path(.destination)
        guard let bytes = FileManager.default.contents(atPath: path)?.prefix(32) else { return .absent }
        if bytes == Data("the user's own".utf8) { return .other }
        return OriginContent(seed: scenario.seed).firstMismatch(inFileAt: path, length: scenario.length)
            .map { .wrong(at: $0) } ?? .right
    }

    /// What is wrong after a run that failed: nothing, if the destination is unchanged, absent or right.
    func violationsAfterFailure(_ scenario: Scenario) -> [String] {
        let remains = [Role.manifest, .draft].filter { self.exists($0) }
        // A manifest or draft without a part would stay for ever if no run followed.
        if !remains.isEmpty, !self.exists(.part), !self.exists(.asidePart), self.destination(scenario) != .right {
            return ["\(remains) exist without a part"]
        }
        if self.exists(.asidePart), !self.exists(.asideManifest) {
            return ["the part that was set aside has no manifest: its bytes are lost"]
        }
        return self.violationsOfDestination(scenario)
    }

    private func exists(_ role: Role) -> Bool { FileManager.default.fileExists(atPath: self.path(role)) }

    private func violationsOfDestination(_ scenario: Scenario) -> [String] {
        switch self.destination(scenario) {
        case .right: []
        case .absent: scenario.beginning == .otherFile ? ["the user's file is gone"] : []
        case .other: scenario.beginning == .otherFile ? [] : ["another file appeared"]
        case .wrong(let offset): ["the destination exists and is wrong at \(offset)"]
        }
    }

    /// Runs the command again without faults, which must end with the right file and nothing beside it.
    func violationsAfterFinishing(_ scenario: Scenario, more: [String] = []) async throws -> [String] {
        let wasThere = self.destination(scenario) == .right
        let outcome = try await self.run(self.command(scenario, more: more))
        var violations: [String] = []
        // segdl may refuse a file in place that it cannot verify.
        let isRefusal = outcome.status == 12 && wasThere && !scenario.isProvable
        if outcome.status != 0, !isRefusal { violations.append("the next run ended with \(outcome)") }
        if self.destination(scenario) != .right {
            violations.append("after the next run the destination holds \(self.destination(scenario))")
        }
        let left = try FileManager.default.contentsOfDirectory(atPath: self.files).filter { $0 != "lost+found" }
            .sorted()
        if left != [Self.fileName] { violations.append("after the next run the directory holds \(left)") }
        return violations
    }
}
