import ArgumentParser
import SegmentedDownload

/// Names for programs, and sources besides the first.
struct LabelOptions: FileOptionGroup {
    @Option(
        help: ArgumentHelp(
            "Another source of the same bytes as the URL before it, used in parallel and if that fails. Repeatable.",
            valueName: "URL"))
    var mirror: [String] = []

    @Option(file: "id") var id: FileEdit?
    @Option(file: "user-info") var userInfo: [FileEdit] = []
}
