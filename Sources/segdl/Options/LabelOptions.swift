import ArgumentParser
import SegmentedDownload

/// Mirrors, and labels that events repeat.
struct LabelOptions: FileOptionGroup {
    @Option(
        help: ArgumentHelp(
            "Another URL of the same file as the URL before it, used in parallel and as a fallback. Repeatable.",
            valueName: "URL"))
    var mirror: [String] = []

    @Option(file: "id") var id: FileEdit?
    @Option(file: "user-info") var userInfo: [FileEdit] = []
}
