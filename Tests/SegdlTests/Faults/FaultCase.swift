import Foundation
import Origin
import Testing

/// One case of the fault matrix, decoded from its file in `Fixtures/Faults`.
///
/// In arguments `{origin}` and `{other}` are the URLs of two origins, `{raw}` that of a file answered with the case's
/// own bytes, `{silent}` that of a listener that never answers, `{ca}` a file with the fixture's authority.
struct FaultCase: Decodable, Sendable, CustomTestStringConvertible {
    enum Need: String, Decodable, Sendable {
        /// Permission to mount file systems.
        case root
        /// A C compiler, to build a failing disk.
        case compiler
    }

    /// The configuration of an origin.
    struct Setup: Decodable, Sendable {
        var tls: Bool?
        var legacy: Bool?
        var certificate: String?
        var hosts: [String]?
    }

    /// The row of the matrix, such as `A1`.
    var row: String
    /// The fault.
    var fault: String
    /// The behaviour of other programs, once per row.
    var peers: String?
    /// The behaviour of segdl.
    var segdl: String
    var needs: Need?
    /// Whether the case mostly waits, and so needs little processor time.
    var patient: Bool?
    var origin: Setup?
    var other: Setup?
    /// Complete answers, one per request; the last applies to all later ones.
    var raw: [String]?
    var steps: [FaultStep]
    /// The files in the directory at the end, and no others.
    var left: [String: FaultRemains]
    /// Why the case does not pass yet.
    var known: String?

    /// The file's name.
    var file = ""
    var testDescription: String { "\(self.file): \(self.fault)" }

    private enum CodingKeys: String, CodingKey, CaseIterable {
        case row, fault, peers, segdl, needs, patient, origin, other, raw, steps, left, known
    }

    static let directory = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().appendingPathComponent("../../../Fixtures/Faults").standardizedFileURL

    /// All cases, in the order of rows.
    static let all: [FaultCase] = {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: Self.directory.path)) ?? []
        return names.filter { $0.hasSuffix(".json") && $0 != "deferred.json" }.map { Self($0) }.sorted {
            ($0.row.first ?? " ", Int($0.row.dropFirst()) ?? 0, $0.file)
                < ($1.row.first ?? " ", Int($1.row.dropFirst()) ?? 0, $1.file)
        }
    }()

    static func all(needing need: Need?) -> [FaultCase] { Self.all.filter { $0.needs == need } }

    /// Traps on a malformed file, because a case that does not run must not pass.
    private init(_ file: String) {
        do {
            let data = try Data(contentsOf: Self.directory.appendingPathComponent(file))
            let known = Set(CodingKeys.allCases.map(\.rawValue))
            let keys = (try JSONSerialization.jsonObject(with: data) as? [String: Any])?.keys.filter {
                !known.contains($0)
            }
            guard keys?.isEmpty == true else { throw FaultError("unknown keys \(keys ?? [])") }
            self = try JSONDecoder().decode(Self.self, from: data)
            self.file = file
        } catch {
            preconditionFailure("Fixtures/Faults/\(file): \(error)")
        }
    }
}

/// An error in a case file or a step.
struct FaultError: Error, CustomStringConvertible {
    var description: String

    init(_ description: String) { self.description = description }
}

extension Origin.Configuration {
    init(_ setup: FaultCase.Setup?) throws {
        self.init(hosts: setup?.hosts ?? ["127.0.0.1"], tls: setup?.tls ?? false)
        self.isLegacyTLS = setup?.legacy ?? false
        guard let name = setup?.certificate else { return }
        guard let certificate = Origin.Certificate(rawValue: name) else { throw FaultError("no certificate \(name)") }
        self.certificate = certificate
    }
}
