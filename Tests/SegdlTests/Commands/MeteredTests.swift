import Foundation
import Origin
import TestSupport
import Testing

/// `--metered`, over an interface that exists for the duration of the test.
struct MeteredTests {
    /// A device whose name marks it as metered, and its address.
    private struct Device {
        let name = "ppp\(getpid())"
        let address = "10.\(getpid() % 199 + 1).231.1"
        let log: String

        /// Creates the device; returns whether that succeeded. It needs root and `iproute2`.
        func make() async throws -> Bool {
            guard try await self.ip("tuntap", "add", "dev", self.name, "mode", "tun") else { return false }
            let hasAddress = try await self.ip("addr", "add", "\(self.address)/32", "dev", self.name)
            let isUp = try await self.ip("link", "set", self.name, "up")
            if hasAddress, isUp { return true }
            try await self.remove()
            return false
        }

        func remove() async throws { _ = try await self.ip("link", "del", self.name) }

        private func ip(_ arguments: String...) async throws -> Bool {
            try await Child.run(["/usr/bin/env", "ip"] + arguments, log: self.log).status == 0
        }
    }

    @Test("Nothing is fetched over a metered interface unless it is allowed")
    func metered() async throws {
        try await withCommand { command in
            let device = Device(log: command.path("ip"))
            guard try await device.make() else { try Test.cancel("no network device can be created here") }
            let result: Result<Void, any Error>
            do {
                try await withOrigin(.init(hosts: [device.address])) { origin in
                    let url = origin.url("/64k/a.bin")
                    let paused = try await command.run(["--metered", "pause", "--retry", "1", url])
                    #expect(paused.status == 4 && paused.errors.contains("uses \(device.name), which is metered"))
                    #expect(origin.log.snapshot().requests.isEmpty)
                    let allowed = try await command.run(["--metered", "allow", url])
                    #expect(allowed.status == 0)
                }
                result = .success(())
            } catch {
                result = .failure(error)
            }
            try await device.remove()
            try result.get()
        }
    }

    @Test("--metered accepts pause and allow")
    func unknown() async throws {
        try await withCommand { command in
            let outcome = try await command.run(["--metered", "sometimes", "http://127.0.0.1/a"])
            #expect(outcome.status == 2 && outcome.errors.contains("'pause' and 'allow'"))
        }
    }
}
