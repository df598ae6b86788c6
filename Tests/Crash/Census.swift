import Foundation
import TestSupport

/// The file system calls of a scenario's run, counted as strace counts them.
enum Census {
    /// Calls that change something, or that occur between two that do.
    static let changing = [
        "openat", "pwrite64", "fallocate", "ftruncate", "fsync", "fdatasync", "rename", "renameat2", "link", "unlink",
        "linkat",
        "flock", "fsetxattr", "close",
    ]
    /// Calls that only read.
    static let looking = ["pread64", "newfstatat", "fstat", "lseek", "access", "statfs", "fgetxattr", "read"]

    /// Calls on a short file while it has no name. No other file gets many of them.
    private static let unnamed = ["pwrite64", "fsetxattr", "fsync"]

    /// Lists the N-th call of each kind to each file, up to the highest count of several runs: timing changes some
    /// counts.
    static func take(_ scenario: Scenario, calls: [String], in lab: Lab, runs: Int = 3) async throws -> [Point] {
        var counts: [Point.Kind: Int] = [:]
        for run in 0..<runs {
            try await lab.withBench("census-\(scenario.name)-\(run)") { bench in
                try await bench.begin(scenario)
                let traced = ["strace", "-f", "-qq", "-y", "-s", "0", "-o", bench.trace]
                let names = calls.map { "?\($0)" }.joined(separator: ",")
                let paths = Role.named.flatMap { ["-P", bench.path($0)] }
                let outcome = try await bench.run(
                    traced + ["-e", "trace=\(names)"] + paths + scenario.faults + bench.command(scenario))
                guard outcome.status == 0 else { throw Bench.SetupFailure("a traced run ended with \(outcome)") }
                counts.merge(Self.count(bench).filter { $0.key.role != .unnamed }) { max($0, $1) }
            }
            guard scenario.isShort else { continue }
            try await lab.withBench("census-\(scenario.name)-unnamed-\(run)") { bench in
                try await bench.begin(scenario)
                let names = Self.unnamed.filter { calls.contains($0) }.joined(separator: ",")
                let outcome = try await bench.run(
                    ["strace", "-f", "-qq", "-y", "-s", "0", "-o", bench.trace, "-e", "trace=\(names)"]
                        + bench.command(scenario))
                guard outcome.status == 0 else { throw Bench.SetupFailure("a traced run ended with \(outcome)") }
                let found = Self.count(bench).filter { $0.key.role == .unnamed }
                guard !found.isEmpty else { throw Bench.SetupFailure("no call was made on a file without a name") }
                counts.merge(found) { max($0, $1) }
            }
        }
        // A permanent fault applies to the part, and strace watches one file at a time.
        let kinds = counts.keys.filter { scenario.faults.isEmpty || $0.role == .part }.filter {
            // A `close` that fails still closes the file (close(2)). Where strace makes it fail it does not run, so the
            // lock of the set-aside part stays, as that of another process would.
            $0 != Point.Kind(call: "close", role: .asidePart)
        }.sorted {
            ($0.call, $0.role.rawValue) < ($1.call, $1.role.rawValue)
        }
        return kinds.flatMap { kind in (1...counts[kind, default: 1]).map { Point(kind: kind, occurrence: $0) } }
    }

    struct Point: Hashable, Sendable {
        struct Kind: Hashable, Sendable {
            var call: String
            var role: Role
        }

        var kind: Kind
        var occurrence: Int

        func injection(_ effect: Injection.Effect) -> Injection {
            Injection(call: self.kind.call, role: self.kind.role, occurrence: self.occurrence, effect: effect)
        }
    }

    /// The number of calls of each kind, of the thread that made the most.
    private static func count(_ bench: Bench) -> [Point.Kind: Int] {
        struct Caller: Hashable {
            var thread: Substring
            var kind: Point.Kind
        }
        var callers: [Caller: Int] = [:]
        let text = String(decoding: FileManager.default.contents(atPath: bench.trace) ?? Data(), as: UTF8.self)
        for line in text.split(separator: "\n") {
            let fields = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
            guard fields.count == 2, let bracket = fields[1].firstIndex(of: "("), !fields[1].hasPrefix("<") else {
                continue
            }
            let call = String(fields[1][..<bracket].drop { $0 == " " })
            guard let role = Self.role(in: fields[1], bench) else { continue }
            callers[Caller(thread: fields[0], kind: .init(call: call, role: role)), default: 0] += 1
        }
        return callers.reduce(into: [:]) { $0[$1.key.kind] = max($0[$1.key.kind] ?? 0, $1.value) }
    }

    /// The first of segdl's files that a traced call names: for a rename, strace filters by that path only.
    private static func role(in line: Substring, _ bench: Bench) -> Role? {
        // Not in the result, which is the descriptor of a file that is only now opened.
        let arguments = line.firstRange(of: ") = ").map { line[..<$0.lowerBound] } ?? line
        if arguments.contains("<\(bench.path(.unnamed))") { return .unnamed }
        let places = Role.named.compactMap { role -> (Role, String.Index)? in
            let path = bench.path(role)
            return ["\"\(path)\"", "<\(path)>", "<\(path)>(deleted)"].compactMap { line.firstRange(of: $0)?.lowerBound }
                .min().map { (role, $0) }
        }
        return places.min { $0.1 < $1.1 }?.0
    }
}
