import Foundation
import Origin
import Testing

/// Two files that differ only in their bytes: equal length and date, from which nginx makes equal tags.
enum TwoFiles {
    static let length = 12 << 20
    static let one = OriginContent(seed: 21).bytes(0..<Int64(length))
    static let other = OriginContent(seed: 22).bytes(0..<Int64(length))
    static let date = Date(timeIntervalSince1970: 1_700_000_000)

    /// Whether the second file has the same bytes.
    enum Bytes: String, CaseIterable, Sendable {
        case same, different

        var content: [UInt8] { self == .same ? TwoFiles.one : TwoFiles.other }
    }

    /// Runs `body` with an nginx that serves both, as `part1.bin` and `part2.bin`.
    static func run(
        _ settings: Nginx.Settings = .init(), second: Bytes = .different, _ body: (Nginx, Segdl) async throws -> Void
    ) async throws {
        try await Nginx.run(settings) { nginx in
            try nginx.serve(Self.one, as: "part1.bin", at: Self.date)
            try nginx.serve(second.content, as: "part2.bin", host: settings.hosts, at: Self.date)
            try await withCommand { command in try await body(nginx, command) }
        }
    }
}

extension Nginx {
    /// Writes a file that one of its hosts serves, with this date.
    func serve(_ content: [UInt8], as name: String, host: Int = 1, at date: Date) throws {
        let path = self.path(name, host: host)
        try FileManager.default.createDirectory(
            at: URL(fileURLWithPath: path).deletingLastPathComponent(), withIntermediateDirectories: true)
        try self.serve(content, as: name, host: host)
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
    }

    /// The lines about requests, in order.
    var requests: [Substring] { self.accessLog.split(separator: "\n") }
}

extension Segdl {
    func bytes(_ name: String) -> Data? { FileManager.default.contents(atPath: self.path(name)) }

    /// Whether a file has this content, byte for byte.
    func holds(_ name: String, _ content: [UInt8]) -> Bool { self.bytes(name) == Data(content) }

    /// All names in the directory with their contents.
    func contents() throws -> [String: Data] {
        let names = try FileManager.default.contentsOfDirectory(atPath: self.directory)
        return Dictionary(uniqueKeysWithValues: names.map { ($0, self.bytes($0) ?? Data()) })
    }
}

extension Nginx {
    /// Interrupts the command, which has four connections, after a sixth of the file.
    ///
    /// - Returns: The number of bytes it kept.
    @discardableResult
    func interrupt(_ command: Segdl, _ arguments: [String]) async throws -> Int {
        try self.nearlyStop(true)
        let kept = try await command.interrupt(arguments)
        try self.nearlyStop(false)
        return kept
    }
}

extension Segdl.Outcome {
    /// Bytes of bodies fetched for the file in this run.
    var bytesFetched: Int? { self.event("completed")?["bytes_fetched"] as? Int }

    /// The bytes of an earlier run with which this run began.
    var resumedFrom: Int? { self.event("started")?["resumed_from"] as? Int }

    var verifiedBy: String? { self.event("completed")?["verified_by"] as? String }
}
