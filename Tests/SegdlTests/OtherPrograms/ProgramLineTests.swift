import Foundation
import Origin
import Testing

/// The lines that the page about other programs gives for their configuration, run as these programs run them.
@Suite("Downloader of other programs")
struct ProgramLineTests {
    private static let page: String = {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(
            path: "../../../Sources/SegmentedDownload/SegmentedDownload.docc/OtherPrograms.md"
        ).standardizedFileURL
        return (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    }()

    /// The value of a setting on the page.
    private static func setting(_ name: String) throws -> String {
        let line = try #require(
            Self.page.split(separator: "\n").first { $0.hasPrefix("\(name) =") || $0.hasPrefix("\(name)=") })
        let text = line[line.index(after: try #require(line.firstIndex(of: "=")))...].trimmingCharacters(
            in: .whitespaces)
        return text.hasPrefix("\"") ? String(text.dropFirst().dropLast()) : text
    }

    /// Runs a configured line in a shell in which segdl is the program under test.
    private static func run(_ line: String, _ command: Segdl) async throws -> Segdl.Outcome {
        try await command.run([], shell: #"segdl() { "$SEGDL_PROGRAM" "$@"; }; SEGDL_PROGRAM=$0; "# + line)
    }

    @Test("pacman's XferCommand writes the package, and resumes it")
    func pacman() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let url = origin.url("/64K/core.pkg.tar.zst?close-after=40K")
                // pacman downloads to this name, and renames the file afterwards.
                let line = try Self.setting("XferCommand").replacing("/usr/bin/segdl", with: "segdl")
                    .replacing("%o", with: command.path("core.pkg.tar.zst.part")).replacing("%u", with: "'\(url)'")
                for _ in 1...2 {
                    let outcome = try await Self.run(line, command)
                    #expect(outcome.status == 0, "\(outcome)")
                    #expect(
                        OriginContent(seed: 1).firstMismatch(
                            inFileAt: command.path("core.pkg.tar.zst.part"), length: 65536) == nil)
                }
                let missing = try await Self.run(line.replacing("/64K/", with: "/64K/?fail=404:all&"), command)
                #expect(missing.status != 0)
            }
        }
    }

    @Test(
        "Portage's FETCHCOMMAND and RESUMECOMMAND write the file into DISTDIR",
        arguments: ["FETCHCOMMAND", "RESUMECOMMAND"])
    func portage(setting: String) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                // Portage expands the escaped variables itself.
                let line = try Self.setting(setting).replacing(#"\""#, with: "\"").replacing(#"\$"#, with: "$")
                    .replacing("${DISTDIR}", with: command.path("distfiles")).replacing("${FILE}", with: "a.tar.xz")
                    .replacing("${URI}", with: origin.url("/64K/a.tar.xz?close-after=40K"))
                let outcome = try await Self.run(line, command)
                #expect(outcome.status == 0, "\(outcome)")
                #expect(
                    OriginContent(seed: 1).firstMismatch(
                        inFileAt: command.path("distfiles/a.tar.xz"), length: 65536) == nil)
            }
        }
    }

    /// yt-dlp in the virtual environment that `PYTHON_TOOLS` names, or in `PATH`.
    private static let ytdlp: String? = {
        let environment = ProcessInfo.processInfo.environment
        let directories =
            [environment["PYTHON_TOOLS"]].compactMap { $0.map { $0 + "/bin" } }
            + (environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return directories.map { $0 + "/yt-dlp" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    @Test(
        "yt-dlp downloads with segdl under the name of each program that it supports",
        .enabled(if: Self.ytdlp != nil, "yt-dlp is not installed"), arguments: ["aria2c", "curl", "wget"])
    func video(name: String) async throws {
        let ytdlp = try #require(Self.ytdlp)
        try await withOrigin { origin in
            origin.route { request in
                request.path == "/page"
                    ? .document(
                        fields: [("Content-Type", "text/html")],
                        "<title>Video</title><video src='/64K/video.mp4?type=video/mp4'></video>") : nil
            }
            try await withCommand { command in
                let outcome = try await command.run(
                    [
                        "--no-config", "--verbose", "--downloader", "./\(name)", "--fixup", "never", "-o", "video.mp4",
                        origin.url("/page"),
                    ],
                    shell: #"ln -s "$0" \#(name) && HOME=$PWD '\#(ytdlp)' "$@""#)
                #expect(outcome.status == 0, "\(outcome)")
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: command.path("video.mp4"), length: 65536) == nil)
                // yt-dlp itself reads the page and the head of the video.
                #expect(
                    outcome.errors.contains("\(name) command line") && !outcome.errors.contains("ERROR"), "\(outcome)")
            }
        }
    }
}
