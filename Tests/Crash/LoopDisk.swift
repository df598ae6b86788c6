import Foundation
import TestSupport

/// An ext4 file system of its own on a loop device, whose power can be cut.
struct LoopDisk: Sendable {
    let mountPoint: String
    private let image: String
    private let options: String
    private let log: String

    /// EXT4_IOC_SHUTDOWN, which is `_IOR('X', 125, __u32)`.
    private static let shutdownRequest: UInt = 0x8004_587D
    /// EXT4_GOING_FLAGS_NOLOGFLUSH: nothing more is written, not even the journal.
    private static let withoutFlush: CInt = 2

    /// - Throws: ``Bench/SetupFailure`` where this system does not let us.
    init(in folder: String, number: Int, options: String) async throws {
        self.image = "\(folder)/disk-\(number).img"
        self.mountPoint = "\(folder)/disk-\(number)"
        self.options = options.isEmpty ? "loop" : "loop,\(options)"
        self.log = "\(folder)/disk-\(number).log"
        try FileManager.default.createDirectory(atPath: self.mountPoint, withIntermediateDirectories: true)
        guard FileManager.default.createFile(atPath: self.image, contents: nil), truncate(self.image, 160 << 20) == 0
        else { throw Bench.SetupFailure("\(self.image) cannot be made") }
        try await self.do("mkfs.ext4", "-q", "-b", "4096", self.image)
        try await self.mount()
    }

    func mount() async throws { try await self.do("mount", "-o", self.options, self.image, self.mountPoint) }

    func unmount() async throws {
        var triesLeft = 1_000
        while true {
            do {
                return try await self.do("umount", self.mountPoint)
            } catch {
                // A process just being spawned for another disk has our descriptors until it is another program, and opens its
                // log first, for which it may wait as long as the disk likes. Nothing tells when it has let go.
                triesLeft -= 1
                guard triesLeft > 0 else { throw error }
                try? await Task.sleep(for: .milliseconds(10))
            }
        }
    }

    /// What is not on the disk by now never will be.
    func cut() throws {
        let descriptor = open(self.mountPoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Bench.SetupFailure("open \(self.mountPoint): \(errno)") }
        defer { close(descriptor) }
        var flags = Self.withoutFlush
        guard ioctl(descriptor, Self.shutdownRequest, &flags) == 0 else {
            throw Bench.SetupFailure("this kernel's ext4 cannot be shut down (errno \(errno))")
        }
    }

    private func `do`(_ command: String...) async throws {
        let outcome = try await Child.run(command, log: self.log)
        guard outcome.status == 0 else { throw Bench.SetupFailure("\(command.joined(separator: " ")): \(outcome)") }
    }
}
