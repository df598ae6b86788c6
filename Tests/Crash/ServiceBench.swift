import ChildProcess
import Dispatch
import Foundation
import TestSupport

/// The background service under test, with directories of its own.
struct ServiceBench: Sendable {
    /// A service or command that did not do what every check depends on.
    struct Failure: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    let lab: Lab
    let name: String
    /// The logs, the home and the runtime directory.
    private let folder: String
    private let state: String
    /// The directory of all files.
    let files: String

    /// - Parameters:
    ///   - name: Short, because the path of a socket has at most 107 bytes.
    ///   - disk: The directory of the state and the files, if they are to be on another disk than the logs.
    init(_ lab: Lab, name: String, disk: String? = nil) throws {
        self.lab = lab
        self.name = name
        self.folder = "\(lab.root)/\(name)"
        self.state = "\(disk ?? self.folder)/state"
        self.files = "\(disk ?? self.folder)/files"
        for directory in ["\(self.folder)/home", "\(self.folder)/run", self.state, self.files] {
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        }
    }

    private var environment: [String: String] {
        [
            "HOME": "\(self.folder)/home", "XDG_CONFIG_HOME": "\(self.folder)/home/.config",
            "XDG_STATE_HOME": self.state, "XDG_RUNTIME_DIR": "\(self.folder)/run",
        ]
    }

    /// Starts the daemon, and does not wait until it answers.
    func start(_ options: [String]) throws -> ServiceDaemon {
        // If this program is killed, the daemon ends by itself when its downloads have.
        try ServiceDaemon(
            [self.lab.segdl, "daemon", "--idle-exit", "10m"] + options, environment: self.environment,
            log: "\(self.folder)/daemon.err")
    }

    /// What the last daemons wrote to standard error: the end, or the beginning of a report of a crash.
    var messages: String {
        let log = FileManager.default.contents(atPath: "\(self.folder)/daemon.err") ?? Data()
        let text = String(decoding: log, as: UTF8.self)
        let crash = text.ranges(of: "rogram crashed").last.map { text[$0.lowerBound...].prefix(3000) }
        return (crash ?? text.suffix(600)).split(separator: "\n").joined(separator: " | ")
    }

    /// Runs a command beside the daemon. One runs at a time, because all have the same log.
    func client(_ arguments: [String], deadline: Duration = .seconds(60)) async throws -> Child.Outcome {
        try await Child.run(
            [self.lab.segdl] + arguments, log: "\(self.folder)/client", environment: self.environment,
            deadline: deadline)
    }

    /// 100: two lists differ only if an entry ends or begins between them, and few do so at a time.
    private static let snapshotTries = 100

    /// Reads the queue and the history.
    ///
    /// These are two requests, and an entry may move from one to the other in between. So the queue is read again until
    /// it has not changed.
    func snapshot() async throws -> ServiceSnapshot {
        var queue = try await self.list()
        for _ in 0..<Self.snapshotTries {
            let history = try await self.lines(["history", "--limit", "1000000"])
            let again = try await self.list()
            if queue.map(\.id) == again.map(\.id) { return ServiceSnapshot(queue: again, history: history) }
            queue = again
        }
        throw Failure("the queue changed \(Self.snapshotTries) times while it was read")
    }

    /// The queue.
    ///
    /// - Parameter state: Only the entries in this state.
    func list(_ state: String? = nil) async throws -> [ServiceSnapshot.Line] {
        try await self.lines(["list"] + (state.map { ["--state", $0] } ?? []))
    }

    private func lines(_ arguments: [String]) async throws -> [ServiceSnapshot.Line] {
        let outcome = try await self.client(arguments + ["--no-autostart", "--json"])
        guard outcome.status == 0 else {
            throw Failure("\(arguments.joined(separator: " ")) ended with \(outcome); the daemon: \(self.messages)")
        }
        let decoder = JSONDecoder()
        return try outcome.output.split(separator: "\n").map {
            try decoder.decode(ServiceSnapshot.Line.self, from: Data($0.utf8))
        }
    }
}

/// The queue and its history at one moment, as `list --json` and `history --json` write them.
struct ServiceSnapshot: Sendable {
    struct Line: Decodable, Hashable, Sendable, CustomStringConvertible {
        struct Failure: Decodable, Hashable, Sendable {
            let message: String
        }

        let id: String
        let state: String
        let url: String
        let path: String
        let priority: Double?
        let error: Failure?

        var description: String {
            "\(self.id) \(self.state) \(self.path)\(self.error.map { " (\($0.message))" } ?? "")"
        }
    }

    let queue: [Line]
    let history: [Line]

    /// The IDs that occur more than once.
    var doubled: [String] {
        Dictionary(grouping: self.queue + self.history, by: \.id).filter { $0.value.count > 1 }.keys.sorted()
    }
}

/// A process of `segdl daemon`.
struct ServiceDaemon: Sendable {
    private let process: ChildProcess
    /// The end of a pipe from its standard output.
    private let output: CInt

    /// 60 s: it takes a tenth of a second, and more on a busy machine.
    private static let startLimit: Duration = .seconds(60)

    /// - Parameter log: The file to which its messages are appended.
    init(_ command: [String], environment: [String: String], log: String) throws {
        var ends: [CInt] = [-1, -1]
        guard pipe(&ends) == 0 else { throw ServiceBench.Failure("pipe: \(errno)") }
        defer { close(ends[1]) }
        let errors = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(errors) }
        do {
            self.process = try ChildProcess(
                command, environment: environment.mapValues { $0 }, output: ends[1], errors: errors)
        } catch {
            close(ends[0])
            throw error
        }
        self.output = ends[0]
    }

    /// Waits until commands are answered.
    ///
    /// - Returns: False if the process ended before, or took too long and was killed.
    func isReady() async -> Bool {
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                // A deadline, not a delay: the task is cancelled as soon as the daemon answers.
                guard (try? await Task.sleep(for: Self.startLimit)) != nil else { return }
                self.kill()
            }
            defer { group.cancelAll() }
            return await self.writes()
        }
    }

    /// Whether it writes to its standard output before it ends. It writes there only once commands are answered.
    private func writes() async -> Bool {
        await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            DispatchQueue.global().async {
                var bytes = [UInt8](repeating: 0, count: 512)
                var count = read(self.output, &bytes, bytes.count)
                while count < 0, errno == EINTR { count = read(self.output, &bytes, bytes.count) }
                continuation.resume(returning: count > 0)
            }
        }
    }

    /// Kills the process, unless it has ended.
    func kill() { self.process.signal(SIGKILL) }

    /// Kills the process, and waits for its end. Call it once.
    func end() async -> ChildProcess.Ending {
        self.kill()
        defer { close(self.output) }
        return await self.process.wait()
    }
}
