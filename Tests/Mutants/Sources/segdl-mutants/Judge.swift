import Foundation

/// A program that may detect a mutation: it fails where one is active.
struct Judge {
    let name: String
    let arguments: [String]
    /// Its time without a mutation, in seconds.
    var seconds = 0.0
    /// The mutations that it evaluates; it cannot detect others.
    private(set) var seen: Set<Int> = []
    /// How often in a row it must fail: more than once if it depends on time.
    private let failures: Int

    static func all(_ workspace: Workspace, machineWorlds: Int, engineWorlds: Int) -> [Judge] {
        let simulate = workspace.programs + "/segdl-simulate"
        let tests = [workspace.programs + "/segdlPackageTests.xctest", "--testing-library", "swift-testing"]
        return [
            // The fast ones.
            Judge(
                name: "core-tests",
                arguments: tests + ["--filter", "^SegmentedDownloadCoreTests\\.", "--skip", Self.slow]),
            Judge(
                name: "machine",
                arguments: [simulate, "machine", "--workers", "1", "--count", String(machineWorlds)]),
            Judge(
                name: "engine",
                arguments: [
                    simulate, "run", "--workers", "1", "--failures-max", "1", "--count", String(engineWorlds),
                ]),
            // The slow ones, mostly with real connections and files, without the tests that measure memory.
            Judge(
                name: "other-tests",
                arguments: tests + [
                    "--filter", "^SegmentedDownloadTests\\.|" + Self.slow, "--skip", "LeakTests|\\.MemoryTests",
                ], failures: 2),
        ]
    }

    /// Tests of Core that run simulated worlds.
    private static let slow = "\\.(LinkTests|SharingTests|MachineWorldTests)"

    init(name: String, arguments: [String], failures: Int = 1, seconds: Double = 0) {
        self.seconds = seconds
        self.failures = failures
        self.name = name
        self.arguments = arguments
    }

    // MARK: Without a mutation

    /// Measures its time and the mutations that it evaluates, in an earlier run or in one without a mutation.
    mutating func learn(_ workspace: Workspace, count: Int) throws {
        let (seen, seconds) = (workspace.seen(self.name), workspace.seconds(self.name))
        let words = self.arguments.joined(separator: " ")
        if let known = rows(seconds).first, known.count == 2, known[1] == words {
            self.seconds = Double(known[0]) ?? 0
        } else {
            try Data(count: count + 3).write(to: URL(fileURLWithPath: seen))
            let command = Command(arguments: self.arguments, environment: ["SEGDL_MUTANTS_SEEN": seen])
            let output = workspace.output(0)
            let start = Date()
            guard try command.run(output: output) == .succeeded else {
                throw Problem("\(self.name) fails without a mutation; see \(output): \(words)")
            }
            self.seconds = Date().timeIntervalSince(start)
            try write("\(self.seconds)\t\(words)\n", to: seconds)
        }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: seen))
        self.seen = Set(bytes.indices.filter { bytes[$0] != 0 })
    }

    // MARK: With a mutation

    /// In KiB. 6 GiB are many times what any judge maps; the limit stops an endless loop from exhausting the memory.
    private static let memoryMax = 6 << 20

    /// Ten times the time without a mutation: a mutation may slow the program without being wrong.
    private var timeout: Int { max(Int(10 * self.seconds), 30) }

    /// Returns how it detected the mutation; `nil` if it did not.
    func judge(_ number: Int, output: String) throws -> String? {
        var how: String?
        for _ in 0..<self.failures {
            how = try self.judgeOnce(number, output: output)
            if how == nil { return nil }
        }
        return how
    }

    private func judgeOnce(_ number: Int, output: String) throws -> String? {
        let command = Command(
            arguments: self.arguments,
            // The backtrace of a trap takes longer than all the rest.
            environment: ["SEGDL_MUTANT": String(number), "SWIFT_BACKTRACE": "enable=no"], timeout: self.timeout,
            memory: Self.memoryMax)
        switch try command.run(output: output) {
        case .succeeded: return nil
        case .trapped: return "a trap"
        case .timedOut: return "no end after \(self.timeout) s"
        case .failed:
            let lines = String(decoding: try Data(contentsOf: URL(fileURLWithPath: output)), as: UTF8.self)
                .split(separator: "\n")
            let line = lines.first { $0.hasPrefix("seed") || $0.contains("recorded an issue") }
            return String((line ?? "a failure").prefix(160).filter { $0 != "\t" })
        }
    }
}
