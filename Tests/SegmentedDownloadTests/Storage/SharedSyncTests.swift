import SegmentedDownload
import SegmentedDownloadCore
import Synchronization
import Testing

/// Files that complete together share a sync of their directory.
@Suite struct SharedSyncTests {
    private static let broken = StorageError(call: "fsync", path: "d", errno: 5, condition: .other, text: "I/O error")

    @Test("Tasks that ask during a sync share the next one and its result", arguments: [nil, broken])
    func shared(error: StorageError?) async throws {
        let syncs = SharedSync()
        let count = Counter()
        let (gate, opener) = AsyncStream.makeStream(of: Void.self)
        let failures = await withTaskGroup(of: StorageError?.self) { group in
            group.addTask {
                await Self.failure(of: syncs, "d") { () async throws(StorageError) in
                    count.increase()
                    for await _ in gate { break }
                }
            }
            while count.value == 0 { await Task.yield() }
            for _ in 0..<8 {
                group.addTask {
                    await Self.failure(of: syncs, "d") { () async throws(StorageError) in
                        count.increase()
                        if let error { throw error }
                    }
                }
            }
            while syncs.waitingCount("d") < 8 { await Task.yield() }
            // No second sync has begun, and another directory does not wait.
            #expect(count.value == 1)
            let other = await Self.failure(of: syncs, "e") { () async throws(StorageError) in }
            #expect(other == nil)
            opener.finish()
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(count.value == 2)
        #expect(failures.count { $0 == error } == (error == nil ? 9 : 8))
        #expect(syncs.waitingCount("d") == 0)
    }

    @Test("A task that asks after a sync has begun is not served by it")
    func alone() async throws {
        let syncs = SharedSync()
        let count = Counter()
        for _ in 0..<3 {
            try await syncs.run("d") { () async throws(StorageError) in count.increase() }
        }
        #expect(count.value == 3)
    }

    /// The error that a sync throws, if any.
    private static func failure(
        of syncs: SharedSync, _ key: String, _ sync: () async throws(StorageError) -> Void
    ) async -> StorageError? {
        do throws(StorageError) {
            try await syncs.run(key, sync)
            return nil
        } catch {
            return error
        }
    }
}

private final class Counter: Sendable {
    private let count = Mutex(0)

    var value: Int { self.count.withLock { $0 } }

    func increase() { self.count.withLock { $0 += 1 } }
}
