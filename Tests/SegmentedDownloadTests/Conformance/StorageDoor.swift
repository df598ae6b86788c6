import SegmentedDownloadCore
import Simulator
import TestSupport
import Testing

@testable import SegmentedDownload

#if canImport(Glibc)
    import Glibc
#endif

/// A storage and an empty directory of it, to test that all implementations of ``Storage`` follow the same rules.
struct StorageDoor: Sendable {
    enum Kind: CaseIterable, Sendable {
        /// ``POSIXStorage`` on the disk with the directory for temporary files.
        case real
        /// ``SimulatedStorage`` without faults.
        case simulated
    }

    let storage: any Storage
    let directory: String

    static func run(_ kind: Kind, _ body: @escaping @Sendable (StorageDoor) async throws -> Void) async throws {
        switch kind {
        case .real:
            try await withTemporaryDirectory { directory in
                try await body(StorageDoor(storage: POSIXStorage(), directory: directory))
            }
        case .simulated:
            try withSimulatedClock { clock in
                let disk = SimulatedDisk(seed: 1, clock: clock)
                disk.capacity = 1 << 30
                try await body(StorageDoor(storage: disk.storage(), directory: "."))
            }
        }
    }

    func path(_ name: String) -> String { DestinationPaths(directory: self.directory, name: name).destination }

    /// Creates a file with some bytes.
    func create(_ name: String, _ bytes: [UInt8] = []) throws(StorageError) -> any StorageFile {
        let file = try self.storage.open(self.path(name), .create)
        try file.writeFully(bytes, at: 0)
        return file
    }

    /// Creates a file with some bytes and closes it.
    func put(_ name: String, _ bytes: [UInt8] = []) throws(StorageError) {
        try self.create(name, bytes).close()
    }

    func contents(of name: String) throws(StorageError) -> [UInt8] {
        let file = try self.storage.open(self.path(name), .read)
        defer { file.close() }
        return try file.contents(limit: 1 << 20)
    }

    func status(of name: String) throws(StorageError) -> StorageStatus? { try self.storage.status(of: self.path(name)) }

    /// Expects that `body` fails with the system's error `number`, in all the parts that the engine reports.
    func expectError(
        _ number: Int32, _ condition: StorageError.Condition, of call: String, _ name: String,
        sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> some Any
    ) async {
        let expected = StorageError(
            call: call, path: self.path(name), errno: number, condition: condition,
            text: String(cString: strerror(number)))
        var found: StorageError?
        do {
            _ = try await body()
        } catch {
            found = error as? StorageError
        }
        #expect(found == expected, sourceLocation: sourceLocation)
    }
}

extension StorageFile {
    /// The result of a single read.
    func bytes(_ count: Int, at offset: Int64) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0xEE, count: count)
        let read = try bytes.withUnsafeMutableBytes { try self.read(into: $0, at: offset) }
        return Array(bytes.prefix(read))
    }
}
