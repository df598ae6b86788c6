import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// A finished file that another program changed without a trace in its modification time.
@Suite("A finished file that was edited and got its time back")
struct EditedFileTests {
    @Test(
        "It is not taken for the remote file, and verify finds the damage",
        arguments: [("300K", []), ("300K", ["-R"]), ("4M", []), ("4M", ["-R"])] as [(String, [String])])
    func edited(size: String, options: [String]) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let arguments = options + ["-s", "4", "-o", "f.bin", origin.url("/\(size)/f.bin")]
                #expect(try await command.run(arguments).status == 0)
                let known = try await command.run(arguments)
                #expect(known.status == 0, "\(known)")
                try command.keepingTime(of: "f.bin") {
                    let file = try FileHandle(forUpdating: URL(fileURLWithPath: command.path("f.bin")))
                    try file.seek(toOffset: 1000)
                    try file.write(contentsOf: Data("edited".utf8))
                    try file.close()
                }
                let edited = command.bytes("f.bin")
                let again = try await command.run(arguments)
                #expect(again.status == 12 && command.bytes("f.bin") == edited, "\(again)")
                let verified = try await command.run("verify", "f.bin")
                #expect(verified.status == 9, "\(verified)")
            }
        }
    }
}

extension Segdl {
    /// Changes a file, and sets its modification time to what it was.
    ///
    /// The change is repeated until 20 ms have passed on the file system's clock: an earlier one is not noticed.
    func keepingTime(of name: String, _ change: () throws -> Void) throws {
        let path = self.path(name)
        var before = stat()
        var after = stat()
        try #require(stat(path, &before) == 0)
        func nanoseconds(_ time: timespec) -> Int { time.tv_sec * 1_000_000_000 + time.tv_nsec }
        repeat {
            try change()
            try #require(utimensat(AT_FDCWD, path, [before.st_atim, before.st_mtim], 0) == 0)
            try #require(stat(path, &after) == 0)
        } while nanoseconds(after.st_ctim) - nanoseconds(before.st_ctim) < 20_000_000
    }
}
