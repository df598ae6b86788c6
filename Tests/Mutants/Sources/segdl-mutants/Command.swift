import Foundation

/// A program that runs for its exit status, with its output in a file.
struct Command {
    var arguments: [String]
    var environment: [String: String] = [:]
    /// Seconds after which it is killed.
    var timeout: Int?
    /// Its limit of address space, in KiB.
    var memory: Int?

    enum Ending: Hashable {
        case succeeded
        case failed
        case trapped
        case timedOut
    }

    func run(output path: String) throws -> Ending {
        guard FileManager.default.createFile(atPath: path, contents: nil),
            let output = FileHandle(forWritingAtPath: path)
        else {
            throw CocoaError(.fileWriteUnknown)
        }
        defer { try? output.close() }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        // `timeout` kills a program that does not end, and its children.
        process.arguments =
            (self.memory.map { ["bash", "-c", "ulimit -v \($0) && exec \"$@\"", "bash"] } ?? [])
            + (self.timeout.map { ["timeout", "-k", "5", String($0)] } ?? []) + self.arguments
        process.environment = ProcessInfo.processInfo.environment.merging(self.environment) { $1 }
        process.standardOutput = output
        process.standardError = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        if process.terminationReason == .uncaughtSignal { return .trapped }
        switch process.terminationStatus {
        case 0: return .succeeded
        case 124, 137: return .timedOut
        case 128...: return .trapped
        default: return .failed
        }
    }
}
