import ChildProcess
import Foundation

/// The environment of contests: a directory, the tested command, and the installed peers.
struct Lab: Sendable {
    struct Problem: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }
    }

    let directory: String
    let segdl: String
    let tools: String
    /// The program that fetches a list with the HTTP client alone.
    let floor: String
    let rounds: Int
    let only: [String]

    init(directory: String, segdl: String?, rounds: Int, only: [String]) throws {
        let own = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        // Absolute, because it is run in other directories.
        self.segdl = segdl.map { URL(fileURLWithPath: $0).path } ?? own.appendingPathComponent("segdl").path
        self.tools = own.appendingPathComponent("segdl-benchmark-tools").path
        self.floor = own.appendingPathComponent("segdl-benchmark-floor").path
        for program in [self.segdl, self.tools, self.floor] where !FileManager.default.isExecutableFile(atPath: program)
        {
            throw Problem("\(program) does not exist; build it with: scripts/build-release")
        }
        self.rounds = rounds
        self.only = only
        self.directory = URL(fileURLWithPath: directory).appendingPathComponent("segdl-benchmark-\(getpid())").path
        try FileManager.default.createDirectory(atPath: self.directory, withIntermediateDirectories: true)
    }

    func remove() { try? FileManager.default.removeItem(atPath: self.directory) }

    func path(_ name: String) -> String { "\(self.directory)/\(name)" }

    /// The path of an installed program.
    func program(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return "\(path):/usr/sbin:/sbin".split(separator: ":").map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// An empty directory.
    func empty(_ name: String) throws -> String {
        let path = self.path(name)
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }

    /// A list of URLs for most programs, and the same for curl.
    func lists(of urls: [String]) throws -> (list: String, curlList: String) {
        let (list, curlList) = (self.path("urls"), self.path("urls.curl"))
        try urls.joined(separator: "\n").write(toFile: list, atomically: true, encoding: .utf8)
        try urls.map { "url = \"\($0)\"\nremote-name" }.joined(separator: "\n")
            .write(toFile: curlList, atomically: true, encoding: .utf8)
        return (list, curlList)
    }

    /// A file of random bytes.
    func file(_ name: String, length: Int) throws -> String {
        let path = self.path(name)
        guard !FileManager.default.fileExists(atPath: path) else { return path }
        try FileManager.default.createDirectory(
            atPath: URL(fileURLWithPath: path).deletingLastPathComponent().path, withIntermediateDirectories: true)
        let output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard output >= 0 else { throw Problem("\(path): \(String(cString: strerror(errno)))") }
        defer { close(output) }
        var generator = SystemRandomNumberGenerator()
        // At most 1 MiB at a time. Each word is a system call, so there are no more than the file needs.
        var words = [UInt64](repeating: 0, count: min(1 << 17, (length + 7) / 8))
        var left = length
        while left > 0 {
            for index in words.indices { words[index] = generator.next() }
            let count = words.withUnsafeBytes { write(output, $0.baseAddress, min($0.count, left)) }
            guard count > 0 else { throw Problem("\(path): \(String(cString: strerror(errno)))") }
            left -= count
        }
        return path
    }

    /// Runs a command to its end, or kills it and its children after `limit`; its output goes to files.
    ///
    /// - Returns: The exit status, minus the signal that ended the command, or `nil` if it was killed.
    @discardableResult
    func run(_ command: [String], limit: Duration = .seconds(300)) async throws -> Int32? {
        let logs = ["log.out", "log.err"].map { open(self.path($0), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600) }
        defer { for log in logs { close(log) } }
        let child = try ChildProcess(command, in: self.directory, output: logs[0], errors: logs[1])
        return await withTaskGroup(of: Void.self) { group in
            group.addTask {
                guard (try? await Task.sleep(for: limit)) != nil else { return }
                child.signal(SIGKILL, toGroup: true)
            }
            defer { group.cancelAll() }
            switch await child.wait() {
            case .exited(let status): return status
            case .signaled(SIGKILL): return nil
            case .signaled(let number): return -number
            }
        }
    }

    /// The last command's standard output.
    var output: String { (try? String(contentsOfFile: self.path("log.out"), encoding: .utf8)) ?? "" }

    /// The last line of the last command's standard error.
    var lastWords: String {
        let text = (try? String(contentsOfFile: self.path("log.err"), encoding: .utf8)) ?? ""
        return String(text.split(whereSeparator: \.isNewline).last ?? "")
    }
}

/// The machine of the measurements.
struct Machine: Codable, CustomStringConvertible {
    var processor: String
    var cores: Int
    var memoryGiB: Int
    var system: String
    var versions: [String]

    init(_ lab: Lab) {
        let lines = (try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8))?.split(separator: "\n") ?? []
        let model = lines.first { $0.hasPrefix("model name") }?.split(separator: ":").last
        self.processor = model.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown"
        self.cores = ProcessInfo.processInfo.activeProcessorCount
        self.memoryGiB = Int((Double(ProcessInfo.processInfo.physicalMemory) / 1_073_741_824).rounded())
        self.system = ProcessInfo.processInfo.operatingSystemVersionString
        self.versions = Client.Program.allCases.compactMap { program in
            program == .segdl || lab.program(program.rawValue) != nil ? program.rawValue : nil
        }
    }

    var description: String {
        "\(self.processor), \(self.cores) cores, \(self.memoryGiB) GiB, \(self.system); here: "
            + self.versions.joined(separator: ", ")
    }
}

extension String {
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(width - self.count, 0)) }
    func leftPadded(to width: Int) -> String { String(repeating: " ", count: max(width - self.count, 0)) + self }
}

extension Double {
    /// Formats with this number of decimals.
    func text(_ digits: Int) -> String { String(format: "%.\(digits)f", self) }
}
