import Foundation
import TestSupport
import Testing

/// The real command, run as a process.
struct Segdl {
    /// The result of a process.
    struct Outcome: Sendable {
        /// The exit status, or minus the signal that ended the process.
        var status: Int32
        var output: String
        var errors: String

        /// The objects that `--json` wrote.
        var events: [[String: Any]] { Child.events(in: self.output) }

        func event(_ name: String) -> [String: Any]? {
            self.events.last { $0["event"] as? String == name }
        }
    }

    /// The command did not end, and was killed at the deadline.
    struct Overdue: Error {
        var outcome: Child.Outcome
    }

    /// The directory in which the command runs.
    let directory: String

    /// The binary built beside the tests.
    static let path: String = {
        let tests = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        var folder = tests.deletingLastPathComponent()
        while !FileManager.default.isExecutableFile(atPath: folder.appendingPathComponent("segdl").path),
            folder.path.count > 1
        {
            folder.deleteLastPathComponent()
        }
        return folder.appendingPathComponent("segdl").path
    }()

    /// Runs the command to its end. `during` is called once it runs, with its process identifier.
    ///
    /// - Parameter shell: A script for bash that runs the command as `"$0" "$@"`.
    func run(
        _ arguments: [String], shell: String? = nil, environment: [String: String] = [:],
        during: @escaping @Sendable (Int32) async -> Void = { _ in }
    ) async throws -> Outcome {
        let log = self.directory + "/.\(UUID().uuidString)"
        defer { for end in [".out", ".err"] { try? FileManager.default.removeItem(atPath: log + end) } }
        let outcome = try await Child.run(
            (shell.map { ["/bin/bash", "-c", $0] } ?? []) + [Self.path] + arguments, in: self.directory, log: log,
            environment: ["no_proxy": "*", "XDG_CONFIG_HOME": "/none", "XDG_RUNTIME_DIR": "/none"].merging(environment)
            { $1 },
            deadline: .seconds(180),
            during: { await during($0.identifier) })
        if outcome.isOverdue { throw Overdue(outcome: outcome) }
        return Outcome(status: outcome.status, output: outcome.output, errors: outcome.errors)
    }

    func run(_ arguments: String...) async throws -> Outcome {
        try await self.run(arguments)
    }

    /// Runs the command, and lets a shell act once a condition holds. In both, `$$` is the command's process.
    ///
    /// The shell does it, not this process, which may be busy with other tests for seconds: the command could end
    /// meanwhile.
    ///
    /// - Parameter preparation: Commands of the shell before the command runs, each with a semicolon.
    func run(
        _ arguments: [String], once condition: String, _ action: String, preparation: String = "",
        environment: [String: String] = [:]
    ) async throws -> Outcome {
        let isThere = "[[ -d /proc/$$ ]]"
        let watch = "while \(isThere) && ! { \(condition); }; do sleep 0.01; done; \(isThere) && \(action)"
        // In the shell's place, so that the shell's identifier is that of the command, and no signal is ignored.
        return try await self.run(
            arguments, shell: #"\#(preparation) { \#(watch); } 2> /dev/null & exec "$0" "$@""#,
            environment: environment)
    }

    /// Runs the command, and sends it a signal once it has written this number of bytes.
    func run(
        _ arguments: [String], signal: Int32, afterWriting count: Int, preparation: String = "",
        environment: [String: String] = [:]
    ) async throws -> Outcome {
        try await self.run(
            arguments, once: Self.hasWritten(count), "kill -\(signal) $$", preparation: preparation,
            environment: environment)
    }

    /// The condition that the command has written this number of bytes.
    static func hasWritten(_ count: Int) -> String {
        #"io=$(< /proc/$$/io) && [[ $io =~ wchar:\ ([0-9]+) ]] && ((BASH_REMATCH[1] >= \#(count)))"#
    }

    /// The condition that the command has printed more than this number of lines with a text.
    static func hasPrinted(_ text: String, moreThan count: Int) -> String {
        "(($(grep -c '\(text)' /proc/$$/fd/1) > \(count)))"
    }

    /// Runs the command on a resource that cannot complete, and interrupts it after it has written this number of
    /// bytes.
    ///
    /// - Returns: The number of bytes it kept.
    @discardableResult
    func interrupt(_ arguments: [String], after count: Int = 1_500_000) async throws -> Int {
        let outcome = try await self.run(["--json"] + arguments, signal: SIGTERM, afterWriting: count)
        #expect(outcome.status == 143, "\(outcome)")
        return try #require(outcome.event("paused")?["bytes_done"] as? Int, "\(outcome)")
    }

    /// Returns once a process of the command has written this number of bytes, or has ended.
    func waitForBytes(writtenBy process: Int32, _ count: Int) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            // On a thread of its own: between two polls the tasks of all other tests would run, or those on the few
            // threads of a queue, which may take longer than the process lives.
            Thread.detachNewThread {
                while Self.bytes(writtenBy: process).map({ $0 < count }) == true { _ = poll(nil, 0, 1) }
                continuation.resume()
            }
        }
    }

    /// `nil` after the process has ended.
    private static func bytes(writtenBy process: Int32) -> Int? {
        guard let text = FileManager.default.contents(atPath: "/proc/\(process)/io") else { return nil }
        let line = String(decoding: text, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("wchar: ") }
        return line.flatMap { Int($0.dropFirst("wchar: ".count)) }
    }

    /// Returns once the running command has reported such events with `--json`, or when the task is cancelled.
    func waitForReport(_ isAwaited: ([[String: Any]]) -> Bool) async {
        while !isAwaited(self.reported) {
            // Not a delay for correctness: it leaves the processor to the processes under test.
            guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }
        }
    }

    /// The events that the running command has reported so far.
    private var reported: [[String: Any]] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: self.directory)) ?? []
        return names.filter { $0.hasPrefix(".") && $0.hasSuffix(".out") }.flatMap { name in
            let text = FileManager.default.contents(atPath: self.path(name)) ?? Data()
            return Child.events(in: String(decoding: text, as: UTF8.self))
        }
    }

    func exists(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: self.directory + "/" + name)
    }

    func path(_ name: String) -> String { self.directory + "/" + name }
}

/// Runs `body` with the command in a directory of its own.
func withCommand<Answer>(_ body: (Segdl) async throws -> Answer) async throws -> Answer {
    try await withTemporaryDirectory(.processes) { try await body(Segdl(directory: $0)) }
}

extension Segdl {
    /// The names in its directory, except those that the tests create.
    var names: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: self.directory).filter { !$0.hasPrefix(".") }.sorted()
        }
    }
}
