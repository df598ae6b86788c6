import CBuildRecord
import SegmentedDownload

/// What `segdl --version` prints, and with `-v` what the program is made of.
enum VersionPage {
    static let line = "segdl \(SegmentedDownloadVersion.string)"

    /// Nil if the arguments do not ask for it.
    static func text(for arguments: [String]) -> String? {
        switch Set(arguments) {
        case ["--version"]: Self.line
        case ["--version", "-v"], ["--version", "--verbose"]: Self.detailed
        default: nil
        }
    }

    private static var detailed: String {
        let recorded = [
            ("commit", segdl_build_commit()), ("compiler", segdl_build_compiler()),
            ("packages", segdl_build_packages()), ("libraries", segdl_libraries()),
        ]
        let indent = String(repeating: " ", count: Self.column)
        let rows = recorded.map { name, value in
            let value =
                value.map { String(cString: $0) }
                ?? "not recorded, because it was not built with scripts/install or scripts/package"
            let lines = Self.unbroken(value).wrapped(to: Self.width).joined(separator: "\n" + indent)
            return name.padded(to: Self.column) + lines.replacing(Self.noBreak, with: " ")
        }
        return ([Self.line] + rows).joined(separator: "\n")
    }

    /// The text, with what is between two commas kept on one line.
    private static func unbroken(_ text: String) -> String {
        text.split(separator: ", ").map { $0.replacing(" ", with: Self.noBreak) }.joined(separator: ", ")
    }

    private static let noBreak = "\u{A0}"
    private static let column = 11
    private static let width = 69
}
