import Foundation

/// The fault matrix as a page of the documentation, made from its cases.
enum FaultTable {
    static let file = FaultCase.directory
        .appendingPathComponent("../../Sources/SegmentedDownload/SegmentedDownload.docc/Faults.md").standardizedFileURL

    /// A row without a case.
    struct Deferred: Decodable {
        var fault: String
        var reason: String
    }

    static func deferred() throws -> [String: Deferred] {
        let data = try Data(contentsOf: FaultCase.directory.appendingPathComponent("deferred.json"))
        return try JSONDecoder().decode([String: Deferred].self, from: data)
    }

    private static let sections = [
        ("A", "Wrong ranges and lengths"), ("B", "Content changes"), ("C", "Connections break"),
        ("D", "Status codes"), ("E", "Redirects"), ("F", "Codings"), ("G", "TLS"), ("H", "Disks and file systems"),
        ("I", "Processes"), ("J", "Input"), ("L", "Identity"),
    ]

    static func page() throws -> String {
        var lines = [
            "# Faults and their outcomes",
            "",
            "Every fault that the tests cause, and how segdl handles it.",
            "",
            "## Overview",
            "",
            "Each line up to “Not in the matrix” is one file in `Fixtures/Faults`; the rows after it have no",
            "case. `scripts/faults-table` makes this page from the files. `FaultMatrixTests` runs each with the",
            "real command on real sockets and a real disk, and checks the exit status, the message, the number",
            "of requests and every file that remains. The column Exit lists the exit statuses of the runs, in",
            "order. The column Others describes what was observed with aria2 1.36, axel 2.17, wget2 1.99, lftp",
            "4.9, hf\\_transfer 0.1.9, curl 7.88 and wget 1.21.",
            "",
        ]
        for (letter, title) in Self.sections {
            lines += ["### \(title)", ""]
            lines += ["| | Fault | Others | segdl | Exit | Case |", "|---|---|---|---|---|---|"]
            var row = ""
            for fault in FaultCase.all where fault.row.hasPrefix(letter) {
                let cells = [
                    fault.row == row ? "" : fault.row,
                    Self.escaped(fault.fault),
                    Self.escaped(fault.peers ?? ""),
                    Self.escaped(fault.segdl) + (fault.known.map { " (*not yet: \(Self.escaped($0))*)" } ?? ""),
                    fault.statuses.map { "\($0)" }.joined(separator: ", "),
                    "`\(fault.file.dropLast(".json".count))`",
                ]
                lines.append("| " + cells.joined(separator: " | ") + " |")
                row = fault.row
            }
            lines.append("")
        }
        lines += ["### Not in the matrix", "", "| | Fault | Reason |", "|---|---|---|"]
        for (row, entry) in try Self.deferred().sorted(by: { $0.key < $1.key }) {
            lines.append("| \(row) | \(Self.escaped(entry.fault)) | \(Self.escaped(entry.reason)) |")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Text as a table's cell may hold it. Backticks stay: the words of exit statuses are code.
    private static func escaped(_ text: String) -> String {
        text.reduce(into: "") { escaped, character in
            if "|*_<>[]\\".contains(character) { escaped.append("\\") }
            escaped.append(character)
        }
    }
}

extension FaultCase {
    /// The exit statuses of its runs.
    fileprivate var statuses: [Int32] {
        self.steps.compactMap { if case .run(let run) = $0 { run.exit } else { nil } }
    }
}
