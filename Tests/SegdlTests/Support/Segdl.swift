import Foundation
import Synchronization

/// The real command, run as a process.
struct Segdl {
    /// What a process left when it ended.
    struct Outcome: Sendable {
        /// The exit status, or minus the signal that ended it.
        var status: Int32
        var output: String
        var errors: String

        /// The objects that `--json` wrote.
        var events: [[String: Any]] {
            self.output.split(separator: "\n").compactMap {
                (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
            }
        }

        func event(_ name: String) -> [String: Any]? {
            self.events.last { $0["event"] as? String == name }
        }
    }

    /// The directory the command runs in.
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
    /// - Parameter shell: a script for bash that runs it, as `"$0" "$@"`.
    func run(
        _ arguments: [String], shell: String? = nil, environment: [String: String] = [:],
        during: @escaping @Sendable (Int32) async -> Void = { _ in }
    ) async throws -> Outcome {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: shell == nil ? Self.path : "/bin/bash")
        process.arguments = (shell.map { ["-c", $0, Self.path] } ?? []) + arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.currentDirectoryURL = URL(fileURLWithPath: self.directory)
        // Files, not pipes: nothing has to be read while the process runs.
        let names = ["out", "err"].map { self.directory + "/.\(UUID().uuidString).\($0)" }
        for name in names { try Data().write(to: URL(fileURLWithPath: name)) }
        let handles = try names.map { try FileHandle(forWritingTo: URL(fileURLWithPath: $0)) }
        process.standardOutput = handles[0]
        process.standardError = handles[1]
        process.standardInput = FileHandle.nullDevice
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        process.terminationHandler = { _ in end.finish() }
        try process.run()
        let identifier = process.processIdentifier
        await withTaskGroup { group in
            group.addTask { await during(identifier) }
            for await _ in ended {}
            group.cancelAll()
        }
        for handle in handles { try handle.close() }
        let texts = names.map { String(decoding: FileManager.default.contents(atPath: $0) ?? Data(), as: UTF8.self) }
        for name in names { try FileManager.default.removeItem(atPath: name) }
        let status = process.terminationStatus
        return Outcome(
            status: process.terminationReason == .uncaughtSignal ? -status : status, output: texts[0], errors: texts[1])
    }

    func run(_ arguments: String...) async throws -> Outcome {
        try await self.run(arguments)
    }

    /// Returns once a process of its has written so much, to files or elsewhere, or has ended.
    func waitForBytes(writtenBy process: Int32, _ count: Int) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            // On a thread of its own: between two looks the tasks of all other tests would have their turn, which may take longer
            // than the process lives.
            DispatchQueue.global().async {
                while Self.bytes(writtenBy: process).map({ $0 < count }) == true { _ = poll(nil, 0, 1) }
                continuation.resume()
            }
        }
    }

    /// Absent once the process has ended.
    private static func bytes(writtenBy process: Int32) -> Int? {
        guard let text = FileManager.default.contents(atPath: "/proc/\(process)/io") else { return nil }
        let line = String(decoding: text, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("wchar: ") }
        return line.flatMap { Int($0.dropFirst("wchar: ".count)) }
    }

    func exists(_ name: String) -> Bool {
        FileManager.default.fileExists(atPath: self.directory + "/" + name)
    }

    func path(_ name: String) -> String { self.directory + "/" + name }
}

/// A directory of its own for one test, removed afterwards.
func withCommand<Answer>(_ body: (Segdl) async throws -> Answer) async throws -> Answer {
    let path = NSTemporaryDirectory() + "segdl-command-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    return try await body(Segdl(directory: path))
}
