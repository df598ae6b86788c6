import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Interrupting and killing the command, and resuming.
@Suite struct InterruptionTests {
    static let signals: [(Int32, Int32)] = [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 129)]

    @Test("A signal stops segdl with the received bytes kept, and the message says how to resume", arguments: signals)
    func signal(signal: Int32, status: Int32) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let stuck = origin.plainURL("/8M/f.bin?stall-after=700000:all")
                let outcome = try await command.run(
                    ["-s", "4", "-o", "f.bin", stuck], signal: signal, afterWriting: 2_500_000)
                #expect(outcome.status == status, "\(outcome)")
                #expect(outcome.errors.contains("segdl: paused: f.bin, "), "\(outcome)")
                #expect(outcome.errors.contains("To resume: segdl resume f.bin"), "\(outcome)")
                let report = try await command.run("status", "f.bin")
                #expect(report.status == 0 && report.output.contains("f.bin"), "\(report)")
                _ = origin.plainURL("/8M/f.bin")
                let resumed = try await command.run("resume", "f.bin")
                #expect(resumed.status == 0, "\(resumed)")
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: 8 << 20) == nil)
                #expect(!command.exists("f.bin.segdl") && !command.exists("f.bin.segdl-part"))
            }
        }
    }

    @Test("Killed again and again at any moment, the same command ends with the right file")
    func killed() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let size: Int64 = 24 << 20
                let url = origin.url("/24M/f.bin?rate=16M")
                let arguments = ["-q", "-s", "4", "--json", "-o", "f.bin", url]
                var kills = 0
                var outcome = try await command.run(arguments) { process in
                    await origin.log.waitForBytes(sent: 1 << 20)
                    kill(process, SIGKILL)
                }
                while outcome.status == -SIGKILL, kills < 12 {
                    kills += 1
                    // Each run is killed a little later: in the head, in the first block, later.
                    let sent = origin.log.snapshot().bytesSent + Int64(kills * kills) * 30_000
                    outcome = try await command.run(arguments) { process in
                        await origin.log.waitForBytes(sent: sent)
                        kill(process, SIGKILL)
                    }
                }
                if outcome.status == -SIGKILL { outcome = try await command.run(arguments) }
                #expect(outcome.status == 0, "\(outcome)")
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: size) == nil)
            }
        }
    }

    @Test("A replaced file is exit 10 with the part untouched; with --on-change restart the new file is fetched")
    func replaced() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let stuck = origin.plainURL("/8M/f.bin?stall-after=700000:all")
                try await command.interrupt(["-s", "4", "-o", "f.bin", stuck], after: 2_500_000)
                let part = FileManager.default.contents(atPath: command.path("f.bin.segdl-part"))
                let url = origin.plainURL("/8M/f.bin")
                origin.replace("/8M/f.bin", seed: 2)
                let refused = try await command.run("-o", "f.bin", url)
                #expect(refused.status == 10, "\(refused)")
                #expect(refused.errors.contains("--on-change restart"))
                #expect(FileManager.default.contents(atPath: command.path("f.bin.segdl-part")) == part)
                let restarted = try await command.run("--on-change", "restart", "-o", "f.bin", url)
                #expect(restarted.status == 0, "\(restarted)")
                #expect(OriginContent(seed: 2).firstMismatch(inFileAt: command.path("f.bin"), length: 8 << 20) == nil)
            }
        }
    }
}
