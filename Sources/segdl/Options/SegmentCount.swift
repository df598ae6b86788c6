import ArgumentParser
import SegmentedDownload

/// The value of `-s`: a number, or `auto`.
struct SegmentCount: Hashable, ExpressibleByArgument {
    /// 1024: a usual limit of open files for one process. More is probably a mistake.
    static let countMax = 1024

    let segments: DownloadOptions.Segments

    init(_ segments: DownloadOptions.Segments) {
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

    var defaultValueDescription: String {
        switch self.segments {
        case .automatic: "auto"
        case .exactly(let count): "\(count)"
        }
    }
}
