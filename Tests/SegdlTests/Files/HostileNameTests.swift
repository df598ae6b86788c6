import Foundation
import Origin
import SegmentedDownloadCore
import Testing

/// Names and heads of a hostile origin, five hundred of them in one run.
@Suite("Hostile names")
struct HostileNameTests {
    private static let atoms = [
        "../", "/", "..\\", "%2e%2e%2f", "..", ".", "~", "-rf", "\u{202e}", "\u{2066}", "\u{1b}[2J", "\u{7f}",
        "\u{9b}31m", "\r",
        "\t", " ", "victim", "victim.segdl-part", "victim.segdl", ".bashrc", "etc/passwd", "CON", "a.iso", "é",
        "\u{301}", "😀",
        String(repeating: "a", count: 300), String(repeating: "é", count: 130), "\"", "\\", ";", "'", "*", "$(x)", "|",
        ".segdl", "\u{feff}",
    ]

    /// A `Content-Disposition` from a seed: either form of the name, quoted or not, or both.
    private static func disposition(_ generator: inout SplitMix64) -> [UInt8] {
        func name() -> String {
            (0..<Int.random(in: 1...4, using: &generator)).map { _ in Self.atoms.randomElement(using: &generator) ?? ""
            }.joined()
        }
        switch Int.random(in: 0..<5, using: &generator) {
        case 0: return Array("attachment; filename=\(name())".utf8)
        case 1: return Array("attachment; filename=\"\(name())\"".utf8)
        case 2: return Array("attachment; filename*=UTF-8''\(Self.encoded(name(), &generator))".utf8)
        case 3:
            return Array(
                "attachment; filename=\"\(name())\"; filename*=UTF-8''\(Self.encoded(name(), &generator))".utf8)
        default: return (0..<40).map { _ in UInt8.random(in: 0...255, using: &generator) }
        }
    }

    private static func encoded(_ text: String, _ generator: inout SplitMix64) -> String {
        text.utf8.map { byte in
            Bool.random(using: &generator) || byte >= 0x80
                ? "%" + String(Int(byte) + 256, radix: 16).dropFirst() : String(UnicodeScalar(byte))
        }.joined()
    }

    @Test(
        "Hostile names cause no write outside the directory or over existing files, and no control character in the output",
        arguments: 0..<5)
    func hostile(block: Int) async throws {
        var generator = SplitMix64(seed: UInt64(block))
        try await withOrigin { origin in
            try await withCommand { command in
                let inside = command.directory + "/top/inside"
                try FileManager.default.createDirectory(atPath: inside, withIntermediateDirectories: true)
                let sentinels = ["victim", "a.iso", "etc"].flatMap {
                    [inside + "/" + $0, command.directory + "/top/" + $0]
                }
                for path in sentinels { try Data("mine".utf8).write(to: URL(fileURLWithPath: path)) }
                let lines = (0..<100).map { number in
                    let value = Self.disposition(&generator).map { "%" + String(Int($0) + 256, radix: 16).dropFirst() }
                        .joined()
                    return origin.url("/\(100 + number)/x\(number)?seed=\(number + 1)&disposition=\(value)")
                }
                try Data(lines.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: command.path("list")))
                let outcome = try await command.run(
                    "-v", "--progress", "log", "-j", "8", "--retry", "0", "-d", inside, "-i", "list")
                #expect([0, 16].contains(outcome.status), "\(outcome)")
                for path in sentinels {
                    #expect(FileManager.default.contents(atPath: path) == Data("mine".utf8), "\(path)")
                }
                let above = try FileManager.default.contentsOfDirectory(atPath: command.directory + "/top").sorted()
                #expect(above == ["a.iso", "etc", "inside", "victim"])
                let names = try FileManager.default.contentsOfDirectory(atPath: inside)
                // Of a hundred heads many are malformed, or name existing files.
                #expect(names.count > 20)
                for name in names {
                    let scalars = name.unicodeScalars
                    #expect(!name.hasPrefix(".") && !name.hasPrefix("-") && name.utf8.count <= 255, "\(name)")
                    #expect(
                        !scalars.contains {
                            $0.properties.generalCategory == .control || $0.properties.generalCategory == .format
                        }, "\(name)")
                    var status = stat()
                    #expect(lstat(inside + "/" + name, &status) == 0 && status.st_mode & S_IFMT == S_IFREG)
                }
                let printed = outcome.errors.unicodeScalars.filter {
                    $0 != "\n" && [.control, .format].contains($0.properties.generalCategory)
                }
                #expect(printed.isEmpty && outcome.output.isEmpty, "\(printed)")
            }
        }
    }
}
