import Foundation

@testable import Origin

/// The environment of the manual's examples: two origins as servers, and the files that examples use.
struct ManualScene {
    let plain: Origin
    let secure: Origin
    let command: Segdl

    /// Longer than the 1 MiB that an example allows.
    private static let size = "2M"
    /// The SHA-256 of the origin's first 2 MiB, which an example uses too.
    private static let digest = "5bc3146930b4831f7e6d5cd538919e3c5da964702131de80bd84b915eb3f8626"

    static func run(_ example: ManualExample) async throws -> Segdl.Outcome {
        // -6 needs the second address.
        try await withOrigin(.init(hosts: ["127.0.0.1", "::1"])) { plain in
            try await withOrigin(.init(tls: true)) { secure in
                try await withCommand { command in
                    let scene = ManualScene(plain: plain, secure: secure, command: command)
                    try scene.writeFiles()
                    try await scene.fetch(for: example)
                    let outcome = try await command.run(
                        [], shell: #"segdl() { "$0" "$@"; }"# + "\n" + scene.script(example.text),
                        environment: scene.environment)
                    // If the example has started the service.
                    _ = try await command.run(["stop"], environment: scene.environment)
                    return outcome
                }
            }
        }
    }

    private var environment: [String: String] {
        [
            "HOME": self.command.directory, "XDG_RUNTIME_DIR": self.command.path("run"),
            "XDG_CONFIG_HOME": self.command.path("config"),
        ]
    }

    // MARK: Files

    private func writeFiles() throws {
        for name in ["isos", "certs", "run"] {
            try FileManager.default.createDirectory(
                atPath: self.command.path(name), withIntermediateDirectories: false)
        }
        let list = "\(self.plain.url("/\(Self.size)/a.iso"))\n  priority=1\n\(self.plain.url("/\(Self.size)/b.iso"))\n"
        let metalink = """
            <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="file.iso"><hash type="sha-256">\(Self.digest)</hash>
            <url>\(self.plain.url("/\(Self.size)/file.iso"))</url></file></metalink>
            """
        let login = "machine 127.0.0.1 login name password password\n"
        let files = [
            "list.txt": list, "list.meta4": metalink,
            "list.json": #"{"list": [{"path": "a.iso", "name": "first.iso"}]}"#,
            "SHA256SUMS": Self.sums, "netrc": login, ".netrc": login,
            "cookies.txt": "127.0.0.1\tFALSE\t/\tFALSE\t0\tname\tvalue\n",
            // The name that `openssl rehash` gives.
            "ca.pem": Origin.certificateAuthorityPEM, "certs/b6cf7875.0": Origin.certificateAuthorityPEM,
            "me.pem": OriginCertificates.client, "me.key": OriginCertificates.clientKey,
        ]
        for (name, text) in files { try self.command.write(text, to: name, mode: 0o600) }
    }

    private static let sums = "\(Self.digest) *file.iso\n"

    /// Prepares an example: interrupted downloads, or a finished or damaged file.
    private func fetch(for example: ManualExample) async throws {
        let subcommand = example.words.dropFirst().first ?? ""
        if subcommand == "status", example.words.contains("--job") {
            _ = try await self.command.run("-q", "--job", "list.txt.segdl-job", "-i", "list.txt")
        } else if example.words.contains("--steal-after") {
            // The other task has ended, so that nothing is waited for.
            let url = self.plain.url("/\(Self.size)/file.iso")
            _ = try await self.command.run("-q", "--shard", "2/2", "--one-file", "-o", "file.iso", url)
        } else if ["resume", "status", "du", "gc"].contains(subcommand) {
            for name in ["file.iso", "isos/a.iso"] {
                let url = self.plain.url("/\(Self.size)/\(name)?stall-after=1M")
                _ = try await self.command.interrupted(["-s", "1", "-o", name, url])
            }
        } else if ["wait", "cancel"].contains(subcommand) {
            let name = example.words.last ?? ""
            let added = try await self.command.run(
                ["add", self.plain.url("/\(Self.size)/\(name)")] + (subcommand == "cancel" ? ["--paused"] : []),
                environment: self.environment)
            precondition(added.status == 0, added.errors)
        } else if subcommand == "adopt" {
            _ = try await self.command.run("-q", self.plain.url("/\(Self.size)/file.iso"))
            let (file, partial) = (self.command.path("file.iso"), self.command.path("file.iso.crdownload"))
            try FileManager.default.moveItem(atPath: file, toPath: partial)
            truncate(partial, 1_000_000)
        } else if subcommand == "verify" {
            _ = try await self.command.run("-q", self.plain.url("/\(Self.size)/file.iso"))
            guard example.words.contains("--repair") else { return }
            let handle = try FileHandle(forUpdating: URL(fileURLWithPath: self.command.path("file.iso")))
            try handle.truncate(atOffset: 1_000_000)
            try handle.close()
        }
    }

    // MARK: Addresses

    /// An example with this environment's servers, ports and interface.
    private func script(_ text: String) -> String {
        let isSecure = ["--cacert", "--capath", "--insecure"].contains { text.contains($0) }
        // A host that --resolve or a proxy resolves keeps its name.
        let server =
            if text.contains("--resolve") {
                "http://example.org:\(self.plain.port)"
            } else if text.contains("--proxy ") {
                "http://example.org"
            } else if text.contains(" -6 ") {
                self.plain.url("", host: "::1")
            } else {
                isSecure ? self.secure.url("") : self.plain.url("")
            }
        return
            text
            .replacing("http://proxy.example.org:3128", with: self.plain.url(""))
            .replacing("example.org:443:192.0.2.7", with: "example.org:\(self.plain.port):127.0.0.1")
            .replacing("--interface eth0", with: "--interface lo")
            // The usual port may be in use.
            .replacing(":6800", with: ":0")
            .replacing(/https:\/\/example\.(?:org|net)\/(?<path>[^\s']*)/) { match in
                self.url(String(match.output.path), at: server)
            }
    }

    private func url(_ path: String, at server: String) -> String {
        let url = "\(server)/\(Self.size)/\(path)"
        switch path.prefix(while: { $0 != "/" }) {
        case "private": return url + "?auth=name:password"
        case "list": return self.document("<a href=a.iso><a href=b.iso>", at: "\(server)/0/list/")
        case "moved": return url + "?redirect=302:" + self.plain.url("/\(Self.size)/file.iso")
        case "SHA256SUMS": return self.document(Self.sums, at: "\(server)/0/SHA256SUMS")
        default: return url
        }
    }

    /// The URL of a document.
    private func document(_ text: String, at url: String) -> String {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)"
        let bytes = answer.utf8.map { ($0 < 16 ? "%0" : "%") + String($0, radix: 16) }
        return "\(url)?raw=\(bytes.joined())"
    }
}
