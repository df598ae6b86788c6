import Foundation
import SegmentedDownload
import SegmentedDownloadCore
import Testing

@Suite("Errors of the library")
struct DownloadErrorTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appending(components: "..", "..", "..").standardizedFileURL

    /// Options of other programs that texts of the library name.
    private static let otherPrograms = ["cp --preserve=xattr", "ulimit -n", "openssl pkey -in KEY -out PLAIN"]

    /// The string literals of one line that name an option, such as `--continue no` or `-o`.
    private static func options(in line: Substring) -> [Substring] {
        guard !line.drop(while: { $0 == " " }).hasPrefix("//") else { return [] }
        // Odd parts are inside of quotation marks. Escaped ones and interpolations shift them by an even number.
        let parts = line.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
        return parts.filter { !$0.offset.isMultiple(of: 2) }.map(\.element).filter { literal in
            let text = Self.otherPrograms.reduce(String(literal)) { $0.replacing($1, with: "") }
            return " \(text)".contains(/[ (]--?[a-zA-Z]/)
        }
    }

    @Test("No text of the library names an option of the command")
    func optionsAreTheCommands() throws {
        var count = 0
        for module in ["SegmentedDownload", "SegmentedDownloadCore"] {
            let directory = Self.root.appending(components: "Sources", module)
            for name in try FileManager.default.subpathsOfDirectory(atPath: directory.path)
            where name.hasSuffix(".swift") {
                count += 1
                let source = try String(contentsOf: directory.appending(path: name), encoding: .utf8)
                for line in source.split(separator: "\n") {
                    #expect(Self.options(in: line).isEmpty, "\(module)/\(name): \(line)")
                }
            }
        }
        #expect(count > 100)
    }

    @Test("An option is found in a literal, and other text is not mistaken for one")
    func optionsAreFound() {
        #expect(Self.options(in: #"    hint: "Start over with --continue no")"#).count == 1)
        #expect(Self.options(in: #"    case .nameTooLong: "Choose a shorter name with -o""#).count == 1)
        #expect(Self.options(in: #"    f("\(host) failed", "--proto is needed")"#).count == 1)
        #expect(Self.options(in: #"    /// The option "--continue""#).isEmpty)
        #expect(Self.options(in: #"    hint: "chmod go-w, or cp --preserve=xattr")"#).isEmpty)
        #expect(Self.options(in: #"    let left = f("a") -x + g("b")"#).isEmpty)
    }

    @Test("The description has the hint, or else the remedy in terms of the library")
    func description() {
        #expect("\(DownloadError(.state, "it failed"))" == "state: it failed.")
        #expect("\(DownloadError(.state, "it failed", hint: "Do it"))" == "state: it failed. Do it.")
        let error = DownloadError(.changed, "it failed", remedy: .startOverOnChange)
        #expect(error.description == "changed: it failed. Set onChange to .restart to start over.")
    }

    @Test("A remedy that this version lacks is described by its word")
    func unknownRemedy() {
        #expect(Remedy(rawValue: "wait_for_rain").description == "wait_for_rain")
        for remedy in Remedy.all { #expect(remedy.description != remedy.rawValue) }
    }

    @Test(
        "Busy servers and networks are transient",
        arguments: [
            (408, true), (421, true), (425, true), (429, true), (500, true), (502, true), (503, true), (504, true),
            (400, false),
            (403, false), (404, false), (410, false), (501, false),
        ])
    func transientStatus(status: Int, isTransient: Bool) {
        #expect(DownloadError(.server, "refused", status: status).isTransient == isTransient)
    }

    @Test("A network failure is transient unless a time limit or a setting causes it")
    func transientNetwork() {
        #expect(DownloadError(.network, "reset").isTransient)
        #expect(!DownloadError(.network, "not finished in time", isTransient: false).isTransient)
        #expect(!DownloadError(.usage, "malformed").isTransient && !DownloadError(.changed, "another").isTransient)
    }

    @Test("A file that is gone or has a wrong digest cannot be resumed, other failed files can")
    func resumable() {
        #expect(DownloadError(.server, "refused", status: 503).isResumable)
        #expect(DownloadError(.server, "refused", status: 403).isResumable)
        #expect(!DownloadError(.server, "gone", status: 404).isResumable)
        #expect(!DownloadError(.server, "gone", status: 410).isResumable)
        #expect(DownloadError(.network, "reset").isResumable && !DownloadError(.exists, "it exists").isResumable)
        #expect(!DownloadError(DownloadError.Code(rawValue: "new"), "it failed").isResumable)
        #expect(!DownloadError(.integrity, "the digest is wrong").isResumable)
        #expect(DownloadError(.integrity, "the part was cut", isTransient: true).isResumable)
    }
}
