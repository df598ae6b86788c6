import Foundation

/// Something that may find a mutation: a program that fails where one is active.
struct Judge {
    let name: String
    let arguments: [String]
    /// How long it takes without a mutation, in seconds.
    private(set) var seconds = 0.0
    /// The mutations it evaluates; others it cannot find.
    private(set) var seen: Set<Int> = []
    /// How often in a row it must fail: more than once where it depends on time.
    private let failures: Int

    static func all(_ workspace: Workspace, machineWorlds: Int, engineWorlds: Int) -> [Judge] {
        let simulate = workspace.programs + "/segdl-simulate"
        let tests = [workspace.programs + "/segdlPackageTests.xctest", "--testing-library", "swift-testing"]
        return [
            // The quick ones.
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
            // The others, most with real connections and files, without those that measure memory.
            Judge(
                name: "other-tests",
                arguments: tests + [
                    "--filter", "^SegmentedDownloadTests\\.|" + Self.slow, "--skip", "LeakTests|\\.MemoryTests",
                ], failures: 2),
        ]
    }

    /// Tests of Core that run simulated worlds of their own.
    private static let slow = "\\.(LinkTests|SharingTests|MachineWorldTests)"

    init(name: String, arguments: [String], failures: Int = 1) {
        self.failures = failures
        self.name = name
        self.arguments = arguments
    }

    // MARK: Without a mutation

    /// Learns how long it takes and what it evaluates, from an earlier run or one without a mutation.
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

    // MARK: With one

    /// In KiB: a loop without end must not take the memory of others. 6 GiB are many times what any judge maps.
    private static let memoryMax = 6 << 20

    /// Ten times what it takes without, for a mutation may make it slower without being wrong.
    private var timeout: Int { max(Int(10 * self.seconds), 30) }

    /// Returns how it found the mutation, if it did.
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
            // The backtrace of a trap would take longer than all the rest.
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
