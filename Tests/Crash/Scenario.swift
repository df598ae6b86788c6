import SegmentedDownload

/// How a file is downloaded: what exists before, and the command to test.
struct Scenario: Hashable, Sendable, CustomStringConvertible {
    /// What exists before the tested run.
    enum Beginning: Hashable, Sendable {
        case nothing
        /// Ctrl-C after about half: the manifest ends with a pause record.
        case paused
        /// `kill -9` after about half.
        case killed
        /// Killed just before the last rename: every byte is in the part.
        case complete
        /// A file of the user exists at the destination.
        case otherFile
    }

    var name: String
    var size = "9M"
    /// The query of the tested run, and that of the earlier run.
    var query = ""
    var beginningQuery = ""
    var beginning = Beginning.nothing
    var options = ["-s", "3"]
    /// The seed of the final content.
    var seed: UInt64 = 1
    /// Faults that apply to every call.
    var faults: [String] = []
    /// Whether the origin sends a validator; without one, segdl refuses to confirm the finished file.
    var isProvable = true
    /// Whether the response names the file.
    var isNamedByResponse = false

    var description: String { self.name }

    var length: Int64 {
        let digits = Int64(self.size.prefix { $0.isNumber }) ?? 0
        return switch self.size.last {
        case "K": digits << 10
        case "M": digits << 20
        default: digits
        }
    }

    /// Whether the file is in memory until it is complete.
    var isShort: Bool {
        self.beginning == .nothing && self.faults.isEmpty && self.length > 0 && self.length <= PartMemory.lengthMax
    }

    private static let unproven = "etag=none&last-modified=none"

    /// Files above 8 MiB have a manifest from the start, smaller ones only from their first checkpoint or pause.
    static let all: [Scenario] = [
        Scenario(name: "fresh"),
        Scenario(name: "fresh-one", options: ["-s", "1"]),
        Scenario(name: "fresh-eight", options: ["-s", "8"]),
        Scenario(name: "fresh-small", size: "3M"),
        Scenario(name: "fresh-tiny", size: "100K", options: ["-s", "1"]),
        Scenario(name: "fresh-empty", size: "0", isProvable: true),
        Scenario(name: "unallocated", options: ["-s", "3", "--file-allocation", "none"]),
        Scenario(
            name: "named", query: "disposition=attachment;filename=f.bin", options: ["-s", "3"], isNamedByResponse: true
        ),
        Scenario(name: "paused", beginning: .paused),
        Scenario(name: "paused-small", size: "3M", beginning: .paused),
        Scenario(name: "killed", beginning: .killed),
        Scenario(
            name: "unproven", query: unproven, beginningQuery: unproven, beginning: .paused, isProvable: false),
        Scenario(name: "complete", beginning: .complete),
        // Its last calls are the first of their kind, so that no other thread's call precedes them.
        Scenario(
            name: "complete-named", query: "disposition=attachment;filename=f.bin", beginning: .complete,
            options: ["-s", "3"], isNamedByResponse: true),
        Scenario(name: "overwrite", beginning: .otherFile, options: ["-s", "3", "--if-exists", "overwrite"]),
        Scenario(
            name: "restart", query: "seed=2", beginning: .paused, options: ["-s", "3", "--on-change", "restart"],
            seed: 2),
        Scenario(
            name: "restart-small", size: "3M", query: "seed=2", beginning: .paused,
            options: ["-s", "3", "--on-change", "restart"], seed: 2),
        Scenario(name: "anew", beginning: .paused, options: ["-s", "3", "--continue", "no"]),
        Scenario(name: "one-stream", query: "ranges=no"),
        Scenario(name: "one-stream-again", query: "ranges=no", beginning: .paused),
        Scenario(name: "no-length", query: "ranges=no&length=chunked"),
        Scenario(name: "resets", query: "reset-after=700000:6"),
        // A file system that cannot rename without replacing: the last step is a link and a removal.
        Scenario(name: "by-link", faults: ["-e", "inject=?renameat2:error=EINVAL"]),
    ]
}
