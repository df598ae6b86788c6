import Foundation
import TestSupport
import Testing

@testable import SegmentedDownload

@Suite("Credentials by host")
struct NetrcTests {
    private static func credentials(_ text: String, _ host: String) throws -> Credentials? {
        try Netrc(text: text, name: "netrc").credentials(for: host)
    }

    @Test("The first entry of a host counts, else the default; comments, macros and other words are skipped")
    func entries() throws {
        let text = """
            # machine a login unused
            machine A.example login x account y password z
            macdef init
            machine a.example login macro

            machine a.example login second password second
            default login anonymous password user@
            """
        #expect(try Self.credentials(text, "a.example") == .basic(user: "x", password: "z"))
        #expect(try Self.credentials(text, "b.example") == .basic(user: "anonymous", password: "user@"))
        #expect(try Self.credentials("machine a login x", "b") == nil)
        let address = "machine ::1 login x default login y"
        #expect(try Self.credentials(address, "[::1]") == .basic(user: "x", password: ""))
    }

    @Test("Quoted words may contain blanks and escapes")
    func quotes() throws {
        let text = #"machine a login "an user" password "p\"\\\t #x""#
        #expect(try Self.credentials(text, "a") == .basic(user: "an user", password: "p\"\\\t #x"))
        #expect(try Self.credentials("machine a login x password p#w", "a") == .basic(user: "x", password: "p#w"))
    }

    @Test(
        "A malformed file is refused without showing its text",
        arguments: ["login secret", "secret password secret", "machine a password", "machine"])
    func malformed(text: String) throws {
        let error = #expect(throws: DownloadError.self) { try Netrc(text: text, name: "netrc") }
        #expect(error?.code == .usage && error?.description.contains("secret") == false)
    }

    @Test("What no program knows is skipped: other words, a byte order mark, the case of words")
    func unknown() throws {
        let text = "\u{FEFF}MACHINE a user x Login u other words password #p # comment\nmachine b login v"
        #expect(try Self.credentials(text, "a") == .basic(user: "u", password: "#p"))
        #expect(try Self.credentials(text, "b") == .basic(user: "v", password: ""))
    }

    @Test("A name that was given takes the password of its own entry")
    func ofUser() throws {
        let netrc = try Netrc(
            text:
                "machine a login alice password one machine a login bob password two default login bob password three",
            name: "netrc")
        #expect(netrc.credentials(for: "a", user: "bob") == .basic(user: "bob", password: "two"))
        #expect(netrc.credentials(for: "b", user: "bob") == .basic(user: "bob", password: "three"))
        #expect(netrc.credentials(for: "a", user: "carol") == nil)
    }

    @Test("A file with passwords that others can read is refused; without passwords it is accepted")
    func permissions() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory + "/netrc"
            let write = { (text: String, mode: Int) in
                try Data(text.utf8).write(to: URL(fileURLWithPath: path))
                try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            }
            for mode in [0o644, 0o640, 0o604] {
                try write("machine a login x password y", mode)
                let error = #expect(throws: DownloadError.self) { try Netrc(contentsOf: FilePath(path)) }
                #expect(error?.code == .policy && error?.hint?.hasPrefix("chmod 600") == true)
            }
            try write("machine a login x password y", 0o600)
            #expect(try Netrc(contentsOf: FilePath(path)).credentials(for: "a") == .basic(user: "x", password: "y"))
            try write("machine a login x", 0o644)
            #expect(try Netrc(contentsOf: FilePath(path)).credentials(for: "a") == .basic(user: "x", password: ""))
            #expect(throws: DownloadError.self) { try Netrc(contentsOf: FilePath(directory + "/none")) }
        }
    }
}
