import Foundation
import Origin

/// The command in a directory of its own and an origin, for an option to show what it does.
func withOptionScene(
    _ configuration: Origin.Configuration = .init(), _ body: (Origin, Segdl) async throws -> Void
) async throws {
    try await withOrigin(configuration) { origin in
        try await withCommand { command in try await body(origin, command) }
    }
}

extension Segdl {
    /// Fetches until some of a file is on the disk, which takes a URL that says no more at some time, and interrupts.
    func interrupted(_ arguments: [String]) async throws -> Outcome {
        try await self.run(["-q"] + arguments) { process in
            // Of what such an origin sends: so much that a part of it is bytes of the file.
            await self.waitForBytes(writtenBy: process, 256 << 10)
            kill(process, SIGINT)
        }
    }

    /// Whether a file holds the origin's content of a length and nothing else.
    func holds(_ name: String, _ length: Int64, seed: UInt64 = 1) -> Bool {
        OriginContent(seed: seed).firstMismatch(inFileAt: self.path(name), length: length) == nil
    }

    /// Writes a file of the command's directory.
    func write(_ text: String, to name: String, mode: Int = 0o644) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: self.path(name)))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: self.path(name))
    }
}

extension Origin {
    /// The values of a field in all requests that have it, whose name is given in lower case.
    func values(of field: String) -> [String] { self.log.snapshot().requests.compactMap { $0[field] } }
}
