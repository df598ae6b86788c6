import Foundation
import TestSupport

/// An ext4 file system on a loop device, whose power can be cut.
struct LoopDisk: Sendable {
    let mountPoint: String
    private let image: String
    private let options: String
    private let log: String

    /// EXT4_IOC_SHUTDOWN, which is `_IOR('X', 125, __u32)`.
    private static let shutdownRequest: UInt = 0x8004_587D
    /// EXT4_GOING_FLAGS_NOLOGFLUSH: nothing more is written, not even the journal.
    private static let withoutFlush: CInt = 2

    /// - Throws: ``Bench/SetupFailure`` if this system does not allow it.
    init(in folder: String, number: Int, options: String) async throws {
        self.image = "\(folder)/disk-\(number).img"
        self.mountPoint = "\(folder)/disk-\(number)"
        self.options = options.isEmpty ? "loop" : "loop,\(options)"
        self.log = "\(folder)/disk-\(number).log"
        try FileManager.default.createDirectory(atPath: self.mountPoint, withIntermediateDirectories: true)
        guard FileManager.default.createFile(atPath: self.image, contents: nil), truncate(self.image, 160 << 20) == 0
        else { throw Bench.SetupFailure("\(self.image) could not be created") }
        try await self.do("mkfs.ext4", "-q", "-b", "4096", self.image)
        try await self.mount()
    }

    /// Creates one disk per worker; on every second one data may reach the disk after the metadata.
    ///
    /// - Throws: ``Bench/SetupFailure`` if this system does not allow it, or cannot cut the power. Then none is left.
    static func several(_ count: Int, in folder: String) async throws -> [LoopDisk] {
        var disks: [LoopDisk] = []
        do {
            for number in 0..<count {
                let options = number % 2 == 1 ? "data=writeback" : ""
                disks.append(try await LoopDisk(in: folder, number: number, options: options))
            }
            guard let first = disks.first else { return [] }
            try first.cut()
            try await first.unmount()
            try await first.mount()
            return disks
        } catch {
            for disk in disks { try? await disk.unmount() }
            throw error
        }
    }

    func mount() async throws { try await self.do("mount", "-o", self.options, self.image, self.mountPoint) }

    func unmount() async throws {
        var triesLeft = 1_000
        while true {
            do {
                return try await self.do("umount", self.mountPoint)
            } catch {
                // A process being spawned for another disk inherits the descriptors until it executes its program. It
                // opens its log first, which may wait for a disk. No event reports that it has closed them.
                triesLeft -= 1
                guard triesLeft > 0 else { throw error }
                try? await Task.sleep(for: .milliseconds(10))
            }
        }
    }

    /// Cuts the power: data that is not on the disk is lost.
    func cut() throws {
        let descriptor = open(self.mountPoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Bench.SetupFailure("open \(self.mountPoint): \(errno)") }
        defer { close(descriptor) }
        var flags = Self.withoutFlush
        guard ioctl(descriptor, Self.shutdownRequest, &flags) == 0 else {
            throw Bench.SetupFailure("this kernel cannot shut down ext4 (errno \(errno))")
        }
    }

    private func `do`(_ command: String...) async throws {
        let outcome = try await Child.run(command, log: self.log)
        guard outcome.status == 0 else { throw Bench.SetupFailure("\(command.joined(separator: " ")): \(outcome)") }
    }
}
