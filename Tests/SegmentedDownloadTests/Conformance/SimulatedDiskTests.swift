import SegmentedDownload
import SegmentedDownloadCore
import Simulator
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// What cannot be tested on a real disk in a process that goes on.
@Suite("What a simulated disk loses and refuses")
struct SimulatedDiskTests {
    /// Cuts the power on 64 disks after `body`, and returns the attribute `user.a` of the file that is left on each.
    private static func afterPowerCuts(
        _ body: @escaping @Sendable (any StorageFile) async throws -> Void,
        _ check: @escaping @Sendable ([[UInt8]?]) -> Void
    ) throws {
        try withSimulatedClock { clock in
            var found: [[UInt8]?] = []
            for seed in UInt64(0)..<64 {
                let disk = SimulatedDisk(seed: seed, clock: clock)
                let file = try disk.storage().open("a", .create)
                try await disk.storage().synchronize(directory: ".")
                try await body(file)
                disk.cutPower()
                found.append(try disk.storage().open("a", .read).attribute("user.a"))
            }
            check(found)
        }
    }

    @Test(
        "A sync of the data leaves an attribute to chance, and a sync of the file keeps it", arguments: [false, true])
    func attribute(metadata: Bool) throws {
        try Self.afterPowerCuts { file in
            #expect(try file.setAttribute("user.a", [1]))
            try await file.synchronize(metadata: metadata)
        } _: { found in
            #expect(found.contains([1]) && found.contains(nil) != metadata)
        }
    }

    @Test(
        "An attribute that was removed comes back after a power cut only if that was not synced",
        arguments: [false, true])
    func removedAttribute(metadata: Bool) throws {
        try Self.afterPowerCuts { file in
            #expect(try file.setAttribute("user.a", [1]))
            try await file.synchronize(metadata: true)
            try file.removeAttribute("user.a")
            try await file.synchronize(metadata: metadata)
        } _: { found in
            #expect(found.contains(nil) && found.contains([1]) != metadata)
        }
    }

    @Test("A file that was closed refuses every call, as a closed descriptor does")
    func closed() throws {
        try withSimulatedClock { clock in
            let file = try SimulatedDisk(seed: 1, clock: clock).storage().open("a", .create)
            #expect(try file.setAttribute("user.a", [1]))
            file.close()
            let calls: [@Sendable () async throws -> Void] = [
                { _ = try [1].withUnsafeBytes { try file.write($0, at: 0) } }, { _ = try file.status() },
                { _ = try file.contents(limit: 1) }, { try file.truncate(to: 0) }, { _ = try file.allocate(1) },
                { _ = try file.firstHole() }, { try await file.synchronize(metadata: false) },
                { _ = try file.tryLock() }, { _ = try file.setAttribute("user.a", [2]) },
                { try file.removeAttribute("user.a") }, { try file.setPermissions(0o600) }, { try file.setModified(0) },
            ]
            for (number, call) in calls.enumerated() {
                let error = await #expect(throws: StorageError.self, "call \(number)") { try await call() }
                #expect(error?.errno == EBADF, "call \(number)")
            }
            #expect(file.attribute("user.a") == nil)
        }
    }
}
