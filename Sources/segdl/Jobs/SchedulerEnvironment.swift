import SegmentedDownload
import SegmentedDownloadCore

/// What a scheduler tells a task about its place among others.
///
/// Sources: sbatch(1) and srun(1), section "Output environment variables"; Kubernetes, "Indexed Job".
struct SchedulerEnvironment {
    private let variables: [String: String]

    init(_ variables: [String: String]) { self.variables = variables }

    /// A task's place, numbered from 0.
    private struct Place {
        var index: Int
        var count: Int
    }

    /// The number in a variable; nil if it is missing or empty.
    private func number(_ name: String) throws(DownloadError) -> Int? {
        guard let text = self.variables[name], !text.isEmpty else { return nil }
        guard let number = DecimalDigits(text.utf8)?.exact, number <= Self.numberMax else {
            throw DownloadError(
                .usage, "--shard auto: \(name) is \(text.shown), and not a number from 0 to \(Self.numberMax)",
                hint: "Write --shard I/N, with I from 1 to N")
        }
        return Int(number)
    }

    /// 4,000,001: the largest `MaxArraySize` (slurm.conf(5)), and more than there are tasks. The product of two is in range.
    private static let numberMax: Int64 = 4_000_001

    /// - Throws: ``DownloadError`` with code `usage` if the environment does not say it.
    func shard() throws(DownloadError) -> Shard {
        let array = try self.arrayPlace()
        let step = try self.stepPlace()
        guard array != nil || step != nil else {
            guard self.variables["JOB_COMPLETION_INDEX"] == nil else {
                throw DownloadError(
                    .usage, "JOB_COMPLETION_INDEX is set, but the number of tasks is not",
                    hint: "Write --shard auto/N, with the completions of the Job as N")
            }
            throw Self.missing
        }
        // Each task of an array may be a step of several tasks.
        let (outer, inner) = (array ?? Place(index: 0, count: 1), step ?? Place(index: 0, count: 1))
        return try Self.shard(
            Place(index: outer.index * inner.count + inner.index, count: outer.count * inner.count))
    }

    /// The same if the number of tasks is given.
    func shard(of count: Int) throws(DownloadError) -> Shard {
        if let index = try self.number("JOB_COMPLETION_INDEX") {
            return try Self.shard(Place(index: index, count: count))
        }
        if let id = try self.number("SLURM_ARRAY_TASK_ID") {
            // SLURM_ARRAY_TASK_MIN is not that of the whole array if only some of its tasks were submitted again.
            let step = try self.stepPlace() ?? Place(index: 0, count: 1)
            guard id < count, id * step.count + step.index < count else {
                let perStep = step.count > 1 ? ", and its step has \(step.count) tasks" : ""
                throw DownloadError(
                    .usage,
                    "SLURM_ARRAY_TASK_ID is \(id)\(perStep), and --shard auto/\(count) is for tasks from 0 to \(count - 1)",
                    hint: step.count > 1
                        ? "Give the tasks of all steps together as N" : "Submit with --array=0-\(count - 1)")
            }
            return try Self.shard(Place(index: id * step.count + step.index, count: count))
        }
        if let step = try self.stepPlace() { return try Self.shard(Place(index: step.index, count: count)) }
        throw Self.missing
    }

    private static var missing: DownloadError {
        DownloadError(
            .usage,
            "--shard auto: no variable of Slurm (an array, or a step of srun) or Kubernetes says which task this is",
            hint: "Write --shard I/N, with I from 1 to N")
    }

    private static func shard(_ place: Place) throws(DownloadError) -> Shard {
        guard let shard = Shard(number: place.index + 1, of: place.count) else {
            throw DownloadError(
                .usage, "--shard auto: the environment says task \(place.index) of \(place.count), counted from 0",
                hint: "Write --shard I/N, with I from 1 to N")
        }
        return shard
    }

    private func arrayPlace() throws(DownloadError) -> Place? {
        guard let id = try self.number("SLURM_ARRAY_TASK_ID") else { return nil }
        guard let count = try self.number("SLURM_ARRAY_TASK_COUNT"), let first = try self.number("SLURM_ARRAY_TASK_MIN")
        else {
            throw DownloadError(
                .usage, "SLURM_ARRAY_TASK_ID is set, but SLURM_ARRAY_TASK_COUNT or SLURM_ARRAY_TASK_MIN is not",
                hint: "Write --shard I/N, with I from 1 to N")
        }
        let step = max(try self.number("SLURM_ARRAY_TASK_STEP") ?? 1, 1)
        let (index, rest) = (id - first).quotientAndRemainder(dividingBy: step)
        let isRegular = try self.number("SLURM_ARRAY_TASK_MAX").map { ($0 - first) / step + 1 == count } ?? true
        guard rest == 0, isRegular, (0..<count).contains(index) else {
            throw DownloadError(
                .usage, "the array's tasks are not at equal distances: task \(id) of \(count) tasks from \(first)",
                hint: "Submit with --array=0-\(max(count - 1, 0)), or write --shard I/N")
        }
        return Place(index: index, count: count)
    }

    private func stepPlace() throws(DownloadError) -> Place? {
        guard let index = try self.number("SLURM_PROCID"),
            let count = try self.number("SLURM_STEP_NUM_TASKS") ?? self.number("SLURM_NTASKS")
        else { return nil }
        // In a batch script, too, SLURM_PROCID is 0 and SLURM_NTASKS is what the job may start.
        let isBatchScript = self.variables["SLURM_JOB_ID"] != nil && self.variables["SLURM_STEP_ID"] == nil
        guard !isBatchScript else {
            guard count > 1, self.variables["SLURM_ARRAY_TASK_ID"] == nil else { return nil }
            throw DownloadError(
                .usage, "the Slurm job has \(count) tasks, but segdl was started by none of them",
                hint: "Start it with srun")
        }
        return Place(index: index, count: count)
    }
}
