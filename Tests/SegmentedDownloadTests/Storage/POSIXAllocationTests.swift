import Foundation
import Testing

@testable import SegmentedDownload

@Suite("Space in a tmpfs")
struct POSIXAllocationTests {
    private static let directory = "/dev/shm"

    private static var free: Int64 { (try? POSIXStorage().freeSpace(in: Self.directory)) ?? 0 }

    private static let isTmpfs =
        (try? String(contentsOfFile: "/proc/mounts", encoding: .utf8))?.contains(" \(directory) tmpfs ") == true

    @Test(
        "Space is reserved only for a file that needs more than an eighth of what is free",
        .enabled(
            if: POSIXAllocationTests.isTmpfs && POSIXAllocationTests.free > 1 << 20, "/dev/shm is full or no tmpfs"))
    func share() throws {
        let path = "\(Self.directory)/segdl-test-\(UUID())"
        let file = try POSIXStorage().open(path, .create)
        defer {
            file.close()
            unlink(path)
        }
        #expect(try !file.allocate(4096))
        #expect(try file.status().allocated == 0)
        // Other tests may use the file system, so the share is far from its limit. What cannot be reserved is an error.
        #expect(throws: StorageError.self) { try file.allocate(16 * Self.free) }
    }
}
