import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Fields with bytes that are not UTF-8, as old Latin-1 servers send them.
@Suite("Fields that are not UTF-8")
struct ObsTextTests {
    @Test(
        "A tag with such bytes is valid: a resume fetches the rest, and a finished file is revalidated")
    func tag() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let arguments = [
                    "-s", "1", "-o", "f.bin",
                    origin.url("/16M/f.bin?stall-after=4M:1&last-modified=none&etag-raw=%22caf%e9%22"),
                ]
                let kept = try await command.interrupt(arguments)
                origin.log.reset()
                let resumed = try await command.run(["--json"] + arguments)
                #expect(resumed.status == 0 && resumed.verifiedBy == "etag", "\(resumed)")
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: 16 << 20) == nil)
                #expect(origin.log.snapshot().requests.map(\.range) == ["bytes=\(kept)-"])
                // As the origin decodes it: an invalid byte becomes the replacement character.
                #expect(origin.log.snapshot().requests.first?.ifRange == "\"caf\u{FFFD}\"")
                let again = try await command.run(arguments)
                #expect(again.status == 0 && origin.log.snapshot().requests.map(\.status) == [206, 304], "\(again)")
            }
        }
    }

    @Test(
        "A suggested name in Latin-1 or in UTF-8 is readable", arguments: ["caf%e9.bin", "caf%c3%a9.bin"],
        ["", "&field=X-Other:%e8"])
    func name(name: String, field: String) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let url = origin.url("/1k/f.bin?disposition=attachment;%20filename=%22\(name)%22\(field)")
                let outcome = try await command.run(url)
                #expect(outcome.status == 0 && command.exists("café.bin"), "\(outcome)")
            }
        }
    }

    @Test("Bodies with the end of a head in them are unchanged", arguments: ["1", "8"])
    func body(segments: String) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    "-s", segments, "-o", "f.bin",
                    origin.url("/16M/f.bin?interim=2&field=X-Other:%e8&close-after=1500000:6"))
                #expect(outcome.status == 0, "\(outcome)")
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("f.bin"), length: 16 << 20) == nil)
            }
        }
    }
}
