import Foundation

/// A compiled-in mutation, as listed in the file of mutations.
struct Row: CustomStringConvertible {
    let number: Int
    let line: Int
    /// File, function, kind, original, replacement and occurrence, separated by tabs.
    let key: String

    static func all(_ workspace: Workspace) -> [Row] {
        rows(workspace.list).compactMap { fields in
            guard fields.count == 8, let number = Int(fields[0]), let line = Int(fields[1]) else { return nil }
            return Row(number: number, line: line, key: fields[2...].joined(separator: "\t"))
        }
    }

    var description: String {
        let fields = self.key.split(separator: "\t", omittingEmptySubsequences: false)
        return "\(self.number)  \(fields[0]):\(self.line)  \(fields[2])  \(fields[3])"
            + (fields[4].isEmpty ? "" : "  →  \(fields[4])")
    }
}

/// The result for a mutation.
struct Finding {
    enum Verdict: String {
        case killed
        case survived
        /// No judge evaluates it.
        case unreached
    }

    let number: Int
    var verdict: Verdict
    var judge = ""
    var seconds = 0.0
    var how = ""

    /// The latest finding of each mutation.
    static func all(_ workspace: Workspace) -> [Finding] {
        var findings: [Int: Finding] = [:]
        for fields in rows(workspace.results) {
            guard fields.count == 5, let number = Int(fields[0]), let verdict = Verdict(rawValue: fields[1]),
                let seconds = Double(fields[3])
            else { continue }
            findings[number] = Finding(
                number: number, verdict: verdict, judge: fields[2], seconds: seconds, how: fields[4])
        }
        return findings.values.sorted { $0.number < $1.number }
    }

    func append(to workspace: Workspace) {
        let fields = [
            String(self.number), self.verdict.rawValue, self.judge, String(format: "%.1f", self.seconds), self.how,
        ]
        if !FileManager.default.fileExists(atPath: workspace.results) {
            _ = try? write("# number, verdict, judge, seconds, how\n", to: workspace.results)
        }
        guard let file = FileHandle(forWritingAtPath: workspace.results) else { return }
        defer { try? file.close() }
        _ = try? file.seekToEnd()
        try? file.write(contentsOf: Data((fields.joined(separator: "\t") + "\n").utf8))
    }
}
