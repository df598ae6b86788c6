import Foundation
import Simulator
import SystemPackage
import TestSupport
import Testing

@testable import SegmentedDownload
@testable import SegmentedDownloadService

/// What holds of the database and of the simulated one.
@Suite struct QueueStorageTests {
    enum Kind: CaseIterable { case database, simulated }

    /// Calls `body` with a function that opens the storage, as one process after another does.
    private static func run(
        _ kind: Kind, _ body: @escaping @Sendable (() async throws -> QueueOpening) async throws -> Void
    ) async throws {
        switch kind {
        case .database:
            try await withTemporaryDirectory { directory in
                let path = FilePath(directory + "/state/queue.sqlite")
                try await body { try await DatabaseStorage.open(at: path, directory: FilePath(directory)) }
            }
        case .simulated:
            try await aside {
                try QueueSimulation.withDatabase { open in try await body { try await open() } }
            }
        }
    }

    @Test(
        "Changes are applied in their order, and are there when the storage is opened again", arguments: Kind.allCases)
    func changes(kind: Kind) async throws {
        try await Self.run(kind) { open in
            let records = try (1...3).map { try QueueStateMachineTests.record($0) }
            let first = try await open()
            #expect(first.records.isEmpty && first.repair == nil)
            try await first.storage.apply(records.map { .insert($0) })
            let error = DownloadError(.server, "503")
            let begun = try records[2].request.begun(at: "/d/c")
            try await first.storage.apply([
                .position(records[0].id, 1 << 40), .state(records[1].id, .failed(error), attempts: 2),
                .begun(records[2].id, begun), .state(records[2].id, .cancelling(keepingPartial: false), attempts: 0),
            ])
            try await first.storage.close()
            let second = try await open()
            #expect(second.records.map(\.id) == [records[1].id, records[2].id, records[0].id])
            #expect(second.records[0].state == .failed(error) && second.records[0].attempts == 2)
            #expect(second.records[1].hasBegun && second.records[1].request == begun)
            #expect(second.records[1].state == .cancelling(keepingPartial: false))
            try await second.storage.close()
        }
    }

    @Test("An entry that ends has a row, rows are listed and deleted, and settings are kept", arguments: Kind.allCases)
    func history(kind: Kind) async throws {
        try await Self.run(kind) { open in
            let records = try (1...4).map { try QueueStateMachineTests.record($0) }
            let first = try await open()
            try await first.storage.apply(records.map { .insert($0) })
            for record in records.prefix(3) {
                try await first.storage.apply([.finish(record.id, QueueStateMachineTests.row(record.id.number))])
            }
            try await first.storage.set("name", to: "value")
            try await first.storage.close()
            let second = try await open()
            let storage = second.storage
            #expect(second.records.map(\.id) == [records[3].id])
            #expect(try await storage.historyCount() == 3)
            #expect(
                try await storage.history(limit: 2, offset: 1).map(\.id) == [2, 1].map { QueueEntry.ID($0).rawValue })
            #expect(try await storage.history(of: records[0].id)?.id == records[0].id.rawValue)
            #expect(try await storage.history(of: records[3].id) == nil)
            #expect(try await storage.deleteHistory(of: [records[0].id, records[3].id]) == 1)
            #expect(try await storage.deleteHistory(of: nil) == 2)
            #expect(try await storage.historyCount() == 0)
            #expect(try await storage.setting("name") == "value")
            #expect(try await storage.setting("other") == nil)
            try await storage.close()
        }
    }
}
