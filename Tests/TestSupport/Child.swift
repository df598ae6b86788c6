import CLinux
import Foundation
import Synchronization

/// A process under test, in a process group of its own so that a tracer's child ends with the tracer.
///
/// `Foundation.Process` loses children here, changes our own working directory for theirs, and reads behind its buffer where some
/// thousand descriptors are open (swift-corelibs-foundation#5472), so this is `posix_spawn` and `waitid`.
package final class Child: Sendable {
    /// What a process left when it ended.
    package struct Outcome: Sendable, CustomStringConvertible {
        /// The exit status, or minus the signal that ended it.
        package var status: Int32
        package var output: String
        package var errors: String
        /// Whether it had to be killed because it did not end.
        package var isOverdue: Bool

        package var wasKilled: Bool { self.status == -SIGKILL && !self.isOverdue }

        package var description: String {
            let words = self.errors.split(separator: "\n").suffix(3).joined(separator: " | ")
            return "\(self.isOverdue ? "did not end" : "status \(self.status)"): \(words)"
        }

        /// The last value of a number in the events of one name that `--json` wrote.
        package func number(_ key: String, of event: String) -> Int64? {
            let last = Child.events(in: self.output).last { $0["event"] as? String == event }
            return (last?[key] as? NSNumber)?.int64Value
        }
    }

    package struct SpawnFailure: Error {
        package var command: String
        package var errno: Int32
    }

    private struct State {
        var isReaped = false
        var status: Int32 = 0
        var isOverdue = false
    }

    package let process: Int32
    private let state = Mutex(State())

    private init(process: pid_t) {
        self.process = process
    }

    /// Runs a command to its end; `during` is called beside it and is cancelled when it ends.
    ///
    /// - Parameters:
    ///   - directory: where it runs; here, without one.
    ///   - log: the path to which `.out` and `.err` are added for what it prints. Files, not pipes: nobody has to read.
    ///   - environment: what it has besides ours, or instead.
    package static func run(
        _ command: [String], in directory: String? = nil, log: String, environment: [String: String] = [:],
        deadline: Duration = .seconds(60), during: @escaping @Sendable (Child) async -> Void = { _ in }
    ) async throws -> Outcome {
        let child = Child(process: try Self.spawn(command, in: directory, log: log, environment: environment))
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await during(child) }
            group.addTask {
                // A limit, not a wait: it is cancelled as soon as the process ends.
                guard (try? await Task.sleep(for: deadline)) != nil else { return }
                child.endOverdue()
            }
            await child.wait()
            group.cancelAll()
        }
        let texts = [".out", ".err"].map {
            String(decoding: FileManager.default.contents(atPath: log + $0) ?? Data(), as: UTF8.self)
        }
        let state = child.state.withLock { $0 }
        return Outcome(status: state.status, output: texts[0], errors: texts[1], isOverdue: state.isOverdue)
    }

    /// The objects that `--json` wrote among the lines of a text.
    package static func events(in text: String) -> [[String: Any]] {
        text.split(separator: "\n").compactMap {
            (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
        }
    }

    /// Sends a signal, unless the process has ended.
    package func signal(_ number: Int32) {
        self.state.withLock { state in
            if !state.isReaped { _ = kill(self.process, number) }
        }
    }

    private func endOverdue() {
        self.state.withLock { state in
            guard !state.isReaped else { return }
            state.isOverdue = true
            _ = kill(-self.process, SIGKILL)
        }
    }

    private func wait() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            DispatchQueue.global().async {
                self.reap()
                continuation.resume()
            }
        }
    }

    private func reap() {
        var information = siginfo_t()
        // Seen first and reaped under the lock, so that nobody signals a process that has taken over the number.
        while waitid(P_PID, id_t(self.process), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
        self.state.withLock { state in
            var status: Int32 = 0
            while waitpid(self.process, &status, 0) < 0, errno == EINTR {}
            state.isReaped = true
            let signal = status & 0x7f
            state.status = signal == 0 ? (status >> 8) & 0xff : -signal
        }
    }

    private static func spawn(
        _ command: [String], in directory: String?, log: String, environment: [String: String]
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, log + ".out", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_addopen(&actions, 2, log + ".err", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        // A socket of ours that it kept open would not be closed when we close it.
        posix_spawn_file_actions_addclosefrom_np(&actions, 3)
        if let directory { posix_spawn_file_actions_addchdir_np(&actions, directory) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A shell that put us in the background has us ignore SIGINT, and the command respects that.
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF))
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        let arguments = command.map { strdup($0) } + [nil]
        let values = variables.map { strdup($0) } + [nil]
        defer { for pointer in arguments + values { free(pointer) } }
        var process: pid_t = 0
        let number = posix_spawnp(&process, command[0], &actions, &attributes, arguments, values)
        guard number == 0 else { throw SpawnFailure(command: command[0], errno: number) }
        return process
    }
}
