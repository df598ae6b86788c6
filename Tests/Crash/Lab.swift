import Foundation
import Origin

/// The environment of the cases: an origin, the tested command, and a directory on the tested disk.
struct Lab: Sendable {
    let origin: Origin
    let segdl: String
    let strace: String?
    let root: String

    /// Runs an origin and creates a directory for the duration of `body`; the directory is kept if `body` throws.
    static func run(_ options: LabOptions, _ body: (Lab) async throws -> Void) async throws {
        let own = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        let root = URL(fileURLWithPath: options.directory).appendingPathComponent("segdl-crash-\(getpid())").path
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        try await withOrigin { origin in
            try await body(
                Lab(
                    origin: origin, segdl: options.segdl ?? own.appendingPathComponent("segdl").path,
                    strace: Self.program("strace"), root: root))
        }
        try FileManager.default.removeItem(atPath: root)
    }

    /// The path of an installed program.
    static func program(_ name: String) -> String? {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return "\(path):/usr/sbin:/sbin".split(separator: ":").map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Creates a directory for one case; it is kept only if the case throws.
    func withBench(_ name: String, _ body: (Bench) async throws -> Void) async throws {
        let bench = try Bench(self, name: name)
        try await body(bench)
        try FileManager.default.removeItem(atPath: bench.folder)
    }
}
