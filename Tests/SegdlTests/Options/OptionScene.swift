import Foundation
import Origin

/// The command in a directory of its own, with an origin.
func withOptionScene(
    _ configuration: Origin.Configuration = .init(), _ body: (Origin, Segdl) async throws -> Void
) async throws {
    try await withOrigin(configuration) { origin in
        try await withCommand { command in try await body(origin, command) }
    }
}

extension Segdl {
    /// Downloads from a URL that stalls until bytes of the file are on disk, and interrupts the command.
    func interrupted(_ arguments: [String]) async throws -> Outcome {
        // 256 KiB: more than the command writes besides the bytes of the file.
        try await self.run(["-q"] + arguments, signal: SIGINT, afterWriting: 256 << 10)
    }

    /// Whether a file has exactly the origin's content of this length.
    func holds(_ name: String, _ length: Int64, seed: UInt64 = 1) -> Bool {
        OriginContent(seed: seed).firstMismatch(inFileAt: self.path(name), length: length) == nil
    }

    /// Writes a file in the command's directory.
    func write(_ text: String, to name: String, mode: Int = 0o644) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: self.path(name)))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: self.path(name))
    }
}

extension Origin {
    /// The values of a field in all requests. The name must be in lower case.
    func values(of field: String) -> [String] { self.log.snapshot().requests.compactMap { $0[field] } }
}
