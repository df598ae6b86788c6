import SegmentedDownload
import SegmentedDownloadCore

/// How far a task of a shared file is, as a flat JSON object or a line.
struct TaskRecord: AmountRecord {
    let v = 1
    let path: String
    let url: String
    let task: Int
    let tasks: Int
    /// The offset of the first byte of the task's range.
    let start: Int64
    let bytesDone: Int64
    let bytesTotal: Int64
    let validator: String?
    let digests: [String]

    init(_ status: SharedFile.TaskStatus, of path: String, _ plan: SharedFilePlan) {
        self.path = path
        self.url = plan.sourceDescription
        self.task = status.shard.number
        self.tasks = status.shard.count
        self.start = status.range.lowerBound
        self.bytesDone = status.bytesDone
        self.bytesTotal = Int64(status.range.count)
        self.validator = plan.resource.validator == .none ? nil : "\(plan.resource.validator)"
        self.digests = plan.digests.map(\.description)
    }

    /// `file.iso, task 3/8`
    var name: String { "\(self.path.shown), task \(self.task)/\(self.tasks)" }
}
