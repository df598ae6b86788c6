import Foundation
import Testing

@testable import segdl

/// segdl as an acquire method of apt.
@Suite("apt")
struct AptTests {
    private static let isAvailable =
        Nginx.path != nil
        && ["apt-get", "dpkg-deb", "dpkg-scanpackages"].allSatisfy {
            FileManager.default.isExecutableFile(atPath: "/usr/bin/" + $0)
        }

    /// Makes a repository with one package in `site`, and directories for apt.
    private static let preparation = """
        export LC_ALL=C
        mkdir -p site pkg/DEBIAN apt/etc/apt.conf.d apt/etc/preferences.d apt/state/lists/partial apt/cache/archives/partial &&
        printf 'Package: segdl-example\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: a <a@example.org>\\nDescription: x\\n' \\
            >pkg/DEBIAN/control && head -c 300000 /dev/urandom >pkg/data &&
        dpkg-deb -b -Znone pkg site/segdl-example_1.0_all.deb >/dev/null && cd site &&
        dpkg-scanpackages . 2>/dev/null >Packages && { date -Ru +'Date: %a, %d %b %Y %H:%M:%S UTC'; echo SHA256:;
        echo " $(sha256sum <Packages | cut -c1-64) $(stat -c %s Packages) Packages"; } >Release
        """

    /// Runs apt with directories of its own, and segdl for http.
    private static func script(_ arguments: String, url: String) -> String {
        """
        echo 'deb [trusted=yes] \(url) ./' >apt/etc/sources.list; : >apt/status
        apt-get -q -o Dir=$PWD/apt -o Dir::Etc=$PWD/apt/etc -o Dir::State=$PWD/apt/state -o Dir::Cache=$PWD/apt/cache \
            -o Dir::State::status=$PWD/apt/status -o Dir::Etc::sourcelist=$PWD/apt/etc/sources.list \
            -o Dir::Etc::sourceparts=- -o APT::Sandbox::User= -o Dir::Bin::Methods::http="$0" \
            -o Debug::pkgAcquire::Worker=1 \(arguments)
        """
    }

    @Test(
        "apt-get updates its lists and downloads a package with segdl",
        .enabled(if: Self.isAvailable, "apt, dpkg-dev or nginx is not installed"))
    func download() async throws {
        try await Nginx.run { nginx in
            try await withCommand { command in
                let prepared = try await command.run([], shell: Self.preparation)
                #expect(prepared.status == 0, "\(prepared)")
                let package = "segdl-example_1.0_all.deb"
                for name in ["Packages", "Release", package] {
                    let bytes = try #require(FileManager.default.contents(atPath: command.path("site/\(name)")))
                    try nginx.serve(Array(bytes), as: name)
                }
                let url = String(nginx.url(""))
                let update = try await command.run([], shell: Self.script("update", url: url))
                #expect(update.status == 0, "\(update)")
                let download = try await command.run([], shell: Self.script("download segdl-example", url: url))
                #expect(
                    download.status == 0 && (download.output + download.errors).contains("via \(Segdl.path)"),
                    "\(download)")
                #expect(
                    FileManager.default.contents(atPath: command.path(package))
                        == FileManager.default.contents(atPath: command.path("site/\(package)")))
                // apt's own check: a package that is not the one of its list.
                try nginx.serve(Array(repeating: 0, count: 300_000), as: package)
                try FileManager.default.removeItem(atPath: command.path(package))
                let wrong = try await command.run([], shell: Self.script("download segdl-example", url: url))
                #expect(wrong.status != 0 && !command.exists(package), "\(wrong)")
            }
        }
    }

    @Test("A failure is one message that names the status, and other messages are ignored")
    func failures() async throws {
        try await Nginx.run { nginx in
            try await withCommand { command in
                let base = String(nginx.url(""))
                try command.write(
                    """
                    601 Configuration
                    Config-Item: APT::Architecture=amd64

                    600 URI Acquire
                    URI: \(base)missing
                    Filename: \(command.path("missing"))

                    600 URI Acquire
                    URI: ftp://127.0.0.1/x
                    Filename: \(command.path("x"))


                    """, to: "messages")
                let outcome = try await command.run(["apt-method"], shell: #""$0" "$@" <messages"#)
                #expect(outcome.status == 0 && outcome.output.hasPrefix("100 Capabilities\n"), "\(outcome)")
                let failures = outcome.output.components(separatedBy: "\n\n").filter { $0.hasPrefix("400 URI Failure") }
                #expect(failures.count == 2, "\(outcome)")
                #expect(failures.first?.contains("FailReason: HttpError404") == true, "\(outcome)")
                #expect(failures.allSatisfy { !$0.contains("Transient-Failure") }, "\(outcome)")
            }
        }
    }

    @Test("After a wrong digest or a change on the server the next attempt starts over")
    func startsOver() async throws {
        try await Nginx.run { nginx in
            try await withCommand { command in
                // The SHA-256 of 300000 ones, computed by sha256sum.
                let digest = try await command.run(
                    [], shell: #"head -c 300000 /dev/zero | tr '\0' '\001' | sha256sum"#
                ).output.prefix(64)
                try command.write(
                    """
                    600 URI Acquire
                    URI: \(nginx.url("x.deb"))
                    Filename: \(command.path("x.deb"))
                    Expected-SHA256: \(digest)


                    """, to: "messages")
                for (byte, isGood) in [(UInt8(0), false), (0, false), (1, true)] {
                    try nginx.serve(Array(repeating: byte, count: 300_000), as: "x.deb")
                    let outcome = try await command.run(["apt-method"], shell: #""$0" "$@" <messages"#)
                    #expect(outcome.output.contains("201 URI Done") == isGood, "\(outcome)")
                    #expect(try command.names.sorted() == (isGood ? ["messages", "x.deb"] : ["messages"]))
                }
                // A partial file of another version.
                try FileManager.default.removeItem(atPath: command.path("x.deb"))
                let url = String(nginx.url("x.deb"))
                try nginx.serve(Array(repeating: 3, count: 30_000_000), as: "x.deb")
                _ = try await command.run("-q", "-o", "x.deb", "--limit-rate", "4M", "--max-time", "1", url)
                #expect(try command.names.contains("x.deb.segdl-part"))
                try nginx.serve(Array(repeating: 1, count: 300_000), as: "x.deb")
                let outcome = try await command.run(["apt-method"], shell: #""$0" "$@" <messages"#)
                #expect(outcome.output.contains("201 URI Done"), "\(outcome)")
            }
        }
    }

    @Test("A line end in a value does not begin another field")
    func injection() {
        #expect(
            AptMessage("400 URI Failure", [("Message", "a\nURI: b\r\nc"), ("X", nil)]).text
                == "400 URI Failure\nMessage: a URI: b c\n\n")
    }
}
