import CLinux
import Foundation

/// An interrupted download that is damaged, repaired by the command, and restored.
///
/// It keeps its inode: in another one segdl would trust no claim without reading the bytes back.
struct Subject: Sendable {
    let bench: Bench
    let scenario: Scenario
    let specimen: Specimen
    private let inode: UInt64
    private let modified: timespec

    init(_ lab: Lab, _ scenario: Scenario, name: String) async throws {
        var other = scenario
        other.beginningQuery = scenario.beginningQuery.isEmpty ? "seed=2" : "\(scenario.beginningQuery)&seed=2"
        let otherBench = try Bench(lab, name: "\(name)-other")
        try await otherBench.begin(other)
        self.bench = try Bench(lab, name: name)
        self.scenario = scenario
        try await self.bench.begin(scenario)
        self.specimen = Specimen(
            part: try Self.bytes(self.bench.path(.part)), manifest: try Self.bytes(self.bench.path(.manifest)),
            otherPart: try Self.bytes(otherBench.path(.part)),
            otherManifest: try Self.bytes(otherBench.path(.manifest)))
        let status = try Self.status(self.bench.path(.part))
        self.inode = UInt64(status.st_ino)
        self.modified = status.st_mtim
    }

    /// Restores the part in its inode, with its bytes and time, and the manifest.
    func restore() async throws {
        let part = self.bench.path(.part)
        let places = [part, self.bench.path(.destination), self.aside]
        guard let place = places.first(where: { (try? Self.status($0)).map { UInt64($0.st_ino) } == self.inode }) else {
            throw Bench.SetupFailure("the part's inode is missing in \(self.bench.files)")
        }
        guard rename(place, part) == 0 else { throw Bench.SetupFailure("rename \(place): \(errno)") }
        let names = try FileManager.default.contentsOfDirectory(atPath: self.bench.files)
        for name in names where "\(self.bench.files)/\(name)" != part {
            try FileManager.default.removeItem(atPath: "\(self.bench.files)/\(name)")
        }
        try Self.overwrite(part, at: 0, with: self.specimen.part)
        try Self.resize(part, to: self.specimen.part.count)
        removexattr(part, "user.segdl")
        var times = [self.modified, self.modified]
        guard utimensat(AT_FDCWD, part, &times, 0) == 0 else { throw Bench.SetupFailure("utimensat: \(errno)") }
        try self.specimen.manifest.write(to: URL(fileURLWithPath: self.bench.path(.manifest)))
    }

    /// The part's path while another file replaces it.
    private var aside: String { "\(self.bench.folder)/aside" }

    func inflict(_ damage: Damage) throws {
        if let change = damage.manifest {
            if let bytes = change(self.specimen.manifest) {
                try Data(bytes).write(to: URL(fileURLWithPath: self.bench.path(.manifest)))
            } else {
                try FileManager.default.removeItem(atPath: self.bench.path(.manifest))
            }
        }
        if let draft = damage.draft { try draft.write(to: URL(fileURLWithPath: self.bench.path(.draft))) }
        let part = self.bench.path(.part)
        switch damage.part {
        case nil: break
        case .remove: rename(part, self.aside)
        case .replace(let bytes):
            rename(part, self.aside)
            try bytes.write(to: URL(fileURLWithPath: part))
        case .flip(let byte, let bit): try Self.flip(byte: byte, bit: bit, of: part)
        case .zero(let range): try Self.overwrite(part, at: range.lowerBound, with: Data(count: range.count))
        case .resize(let length): try Self.resize(part, to: length)
        }
    }

    /// Does what a failure's hint says if it tells the user to delete the part and the manifest, as for one of a later version.
    func deleteFiles(namedBy errors: String) throws {
        let (part, manifest) = (self.bench.path(.part), self.bench.path(.manifest))
        guard errors.contains("delete \(manifest) and \(part)") else { return }
        rename(part, self.aside)
        try FileManager.default.removeItem(atPath: manifest)
    }

    static func flip(byte: Int, bit: Int, of path: String) throws {
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64(byte))
        let old = try file.read(upToCount: 1)?.first ?? 0
        try file.close()
        try Self.overwrite(path, at: byte, with: Data([old ^ 1 << UInt8(bit)]))
    }

    static func resize(_ path: String, to length: Int) throws {
        guard truncate(path, off_t(length)) == 0 else { throw Bench.SetupFailure("truncate \(path): \(errno)") }
    }

    private static func overwrite(_ path: String, at offset: Int, with bytes: Data) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: bytes)
        try file.close()
    }

    private static func bytes(_ path: String) throws -> Data {
        guard let bytes = FileManager.default.contents(atPath: path) else {
            throw Bench.SetupFailure("\(path) is missing")
        }
        return bytes
    }

    private static func status(_ path: String) throws -> stat {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw Bench.SetupFailure("lstat \(path): \(errno)") }
        return status
    }
}
