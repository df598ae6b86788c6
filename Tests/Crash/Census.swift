import Foundation
import TestSupport

/// Which file system calls a scenario's run makes, counted as the tracer counts them.
enum Census {
    /// Calls that change something, or stand between two that do.
    static let changing = [
        "openat", "pwrite64", "fallocate", "ftruncate", "fsync", "fdatasync", "rename", "renameat2", "link", "unlink",
        "flock", "fsetxattr", "close",
    ]
    /// Calls that look.
    static let looking = ["pread64", "newfstatat", "fstat", "lseek", "access", "statfs", "fgetxattr", "read"]

    /// The N-th call of each kind to each file, as often as it was seen in any of a few runs: timing moves some.
    static func take(_ scenario: Scenario, calls: [String], in lab: Lab, runs: Int = 3) async throws -> [Point] {
        var counts: [Point.Kind: Int] = [:]
        for run in 0..<runs {
            try await lab.withBench("census-\(scenario.name)-\(run)") { bench in
                try await bench.begin(scenario)
                let traced = ["strace", "-f", "-qq", "-y", "-s", "0", "-o", bench.trace]
                let names = calls.map { "?\($0)" }.joined(separator: ",")
                let paths = Role.allCases.flatMap { ["-P", bench.path($0)] }
                let outcome = try await bench.run(
                    traced + ["-e", "trace=\(names)"] + paths + scenario.faults + bench.command(scenario))
                guard outcome.status == 0 else { throw Bench.SetupFailure("a traced run came to \(outcome)") }
                counts.merge(Self.count(bench)) { max($0, $1) }
            }
        }
        // A fault that always holds is on the part: the tracer looks at one file at a time.
        let kinds = counts.keys.filter { scenario.faults.isEmpty || $0.role == .part }.filter {
            // A `close` that fails has closed the file all the same (close(2)); one that the tracer makes fail has not, and the
            // lock of what was set aside stays, as another process's would.
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

    /// The most calls of a kind that one thread made.
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

    /// The first of our files that a traced call names: of the two of a rename, the tracer looks at that only.
    private static func role(in line: Substring, _ bench: Bench) -> Role? {
        let places = Role.allCases.compactMap { role -> (Role, String.Index)? in
            let path = bench.path(role)
            return ["\"\(path)\"", "<\(path)>", "<\(path)>(deleted)"].compactMap { line.firstRange(of: $0)?.lowerBound }
                .min().map { (role, $0) }
        }
        return places.min { $0.1 < $1.1 }?.0
    }
}
