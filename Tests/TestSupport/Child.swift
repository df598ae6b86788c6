import ChildProcess
import Foundation
import Synchronization

/// A process under test.
package final class Child: Sendable {
    /// The result of a process.
    package struct Outcome: Sendable, CustomStringConvertible {
        /// The exit status, or minus the signal that ended the process.
        package var status: Int32
        package var output: String
        package var errors: String
        /// Whether the process was killed at the deadline.
        package var isOverdue: Bool

        package var wasKilled: Bool { self.status == -SIGKILL && !self.isOverdue }

        package var description: String {
            let words = self.errors.split(separator: "\n").suffix(3).joined(separator: " | ")
            return "\(self.isOverdue ? "did not end" : "status \(self.status)"): \(words)"
        }

        /// The last value of a key in the events of one name that `--json` wrote.
        package func number(_ key: String, of event: String) -> Int64? {
            let last = Child.events(in: self.output).last { $0["event"] as? String == event }
            return (last?[key] as? NSNumber)?.int64Value
        }
    }

    private let process: ChildProcess
    private let isOverdue = Mutex(false)

    package var identifier: Int32 { self.process.identifier }

    private init(_ process: ChildProcess) {
        self.process = process
    }

    /// Runs a command to its end. `during` runs beside it and is cancelled when the command ends.
    ///
    /// - Parameters:
    ///   - directory: The working directory; by default the current one.
    ///   - log: The path to which `.out` and `.err` are appended for the output. Files need no reader, unlike pipes.
    ///   - environment: Variables added to the inherited ones, or in place of them.
    package static func run(
        _ command: [String], in directory: String? = nil, log: String, environment: [String: String] = [:],
        deadline: Duration = .seconds(60), during: @escaping @Sendable (Child) async -> Void = { _ in }
    ) async throws -> Outcome {
        let paths = [".out", ".err"].map { log + $0 }
        let logs = paths.map { open($0, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600) }
        defer { for log in logs { close(log) } }
        let child = Child(
            try ChildProcess(
                command, in: directory, environment: environment.mapValues { $0 }, output: logs[0], errors: logs[1]))
        let ending = await withTaskGroup(of: Void.self) { group in
            group.addTask { await during(child) }
            group.addTask {
                // A deadline, not a delay: the task is cancelled as soon as the process ends.
                guard (try? await Task.sleep(for: deadline)) != nil else { return }
                child.isOverdue.withLock { $0 = true }
                child.process.signal(SIGKILL, toGroup: true)
            }
            defer { group.cancelAll() }
            return await child.process.wait()
        }
        let texts = paths.map { String(decoding: FileManager.default.contents(atPath: $0) ?? Data(), as: UTF8.self) }
        let status =
            switch ending {
            case .exited(let status): status
            case .signaled(let number): -number
            }
        return Outcome(
            status: status, output: texts[0], errors: texts[1], isOverdue: child.isOverdue.withLock { $0 })
    }

    /// The objects that `--json` wrote among the lines of a text.
    package static func events(in text: String) -> [[String: Any]] {
        text.split(separator: "\n").compactMap {
            (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
        }
    }

    /// Sends a signal, unless the process has ended.
    package func signal(_ number: Int32) { self.process.signal(number) }
}
