import ArgumentParser
import SegmentedDownload

/// What programs call files by, and sources beside the first.
struct LabelOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Another source of the same bytes as the URL before it: for failover, and used in parallel. Repeatable.",
            valueName: "URL"))
    var mirror: [String] = []

    @Option(help: ArgumentHelp("The file's name in events. (default: its number)", valueName: "ID"))
    var id: String?

    @Option(
        help: ArgumentHelp(
            "Kept with the files and echoed in events, never sent to a server. Repeatable.", valueName: "KEY=VALUE"))
    var userInfo: [UserInfo] = []

    mutating func validate() throws {
        if self.id?.isEmpty == true { throw ValidationError("--id is empty") }
    }

    func apply(to request: inout DownloadRequest) {
        request.id = self.id.map { Download.ID(rawValue: $0) }
        for info in self.userInfo { request.userInfo[info.key] = info.value }
    }
}
