import ArgumentParser
import SegmentedDownload

/// The value of `-s`: a number, or `auto`.
struct SegmentCount: Hashable, ExpressibleByArgument {
    /// A sixteenth of the file descriptors a process may usually have: more is a mistake.
    static let countMax = 1024

    let segments: DownloadRequest.Segments

    init(_ segments: DownloadRequest.Segments) {
        self.segments = segments
    }

    init?(argument: String) {
        if argument.lowercased() == "auto" {
            self.init(.automatic)
        } else if let count = Int(argument), (1...Self.countMax).contains(count) {
            self.init(.exactly(count))
        } else {
            return nil
        }
    }

    /// The number asked for, if one was.
    var exact: Int? {
        switch self.segments {
        case .automatic: nil
        case .exactly(let count): count
        }
    }

    var defaultValueDescription: String { self.exact.map { "\($0)" } ?? "auto" }
}
