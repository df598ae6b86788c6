import Foundation
import Origin
import Testing

/// Lists that several tasks share, with `--shard` and `--job`.
@Suite("Jobs")
struct JobTests {
    /// A list of numbered files, and the command in a directory with it.
    private static func withList(
        _ count: Int, query: @escaping (Int) -> String = { _ in "" },
        _ body: (Segdl, Origin) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let list = (0..<count).map { origin.url("/1K/f\($0)\(query($0))") + "\n  out=f\($0)\n" }
                try Data(list.joined().utf8).write(to: URL(fileURLWithPath: command.path("list")))
                try await body(command, origin)
            }
        }
    }

    private static func names(_ command: Segdl, _ directory: String) -> Set<String> {
        Set((try? FileManager.default.contentsOfDirectory(atPath: command.path(directory))) ?? [])
    }

    @Test("Each of three tasks fetches its share, together everything once, and running them again asks for nothing")
    func shares() async throws {
        try await Self.withList(60) { command, origin in
            var before: Set<String> = []
            for task in 1...3 {
                let outcome = try await command.run("--shard", "\(task)/3", "-i", "list", "-d", "out", "--retry", "1")
                #expect(outcome.status == 0, "\(outcome)")
                #expect(outcome.errors.contains("segdl: task \(task)/3 of list.segdl-job: "), "\(outcome)")
                let names = Self.names(command, "out")
                #expect(names.count > before.count && names.isSuperset(of: before))
                before = names
            }
            #expect(before.count == 60)
            let requests = origin.log.snapshot().requests.count
            #expect(requests == 60)
            for task in 1...3 {
                let outcome = try await command.run("--shard=\(task)/3", "-i", "list", "-d", "out")
                #expect(outcome.status == 0 && outcome.errors.contains("0 files finished, "), "\(outcome)")
            }
            // Another number of tasks finds the same records.
            for task in 1...4 {
                #expect(try await command.run("--shard=\(task)/4", "-i", "list", "-d", "out").status == 0)
            }
            #expect(origin.log.snapshot().requests.count == requests)
        }
    }

    // MARK: Files of finished entries

    private static func write(_ bytes: [UInt8], to path: String) throws {
        let file = try #require(FileHandle(forWritingAtPath: path))
        defer { try? file.close() }
        try file.write(contentsOf: Data(bytes))
    }

    private static func contents(_ command: Segdl, _ path: String) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: command.path(path)))
    }

    @Test("With another base a relative URL is another file, which is fetched; the same base finds the record")
    func otherBase() async throws {
        try await withOrigin { origin in
            origin.route { .content("/1K/f.bin?seed=\($0.path.hasPrefix("/two/") ? 2 : 1)") }
            try await withCommand { command in
                try Data("f.bin\n".utf8).write(to: URL(fileURLWithPath: command.path("list")))
                let run = { (place: String) in
                    try await command.run("--job", "j", "-i", "list", "-d", "out", "--base-url", origin.url(place))
                }
                #expect(try await run("/one/").status == 0)
                let first = try Self.contents(command, "out/f.bin")
                let other = try await run("/two/")
                #expect(other.status == 0 && other.errors.contains("1 files finished"), "\(other)")
                let second = try Self.contents(command, "out/f.bin")
                #expect(second != first)
                let requests = origin.log.snapshot().requests
                #expect(requests.contains { $0.path == "/1K/f.bin?seed=2" }, "\(requests)")
                let again = try await run("/two/")
                #expect(again.status == 0 && again.errors.contains("0 files finished, 1 before"), "\(again)")
                #expect(origin.log.snapshot().requests.count == requests.count)
                // The file that the first base has is no longer there.
                #expect(try await run("/one/").status == 0)
                let last = try Self.contents(command, "out/f.bin")
                #expect(last == first)
                let wrong = try await command.run("--job", "j", "-i", "list", "-d", "out", "--base-url", "gopher://h/")
                #expect(wrong.status != 0 && wrong.errors.contains("gopher"), "\(wrong)")
            }
        }
    }

    @Test("A finished file that was deleted is fetched again, by its task only")
    func deleted() async throws {
        try await Self.withList(20) { command, origin in
            let task = { (number: Int) in
                try await command.run("--shard", "\(number)/2", "-i", "list", "-d", "out")
            }
            for number in 1...2 { #expect(try await task(number).status == 0) }
            let names = Self.names(command, "out")
            #expect(names.count == 20)
            try FileManager.default.removeItem(atPath: command.path("out"))
            #expect(try await task(1).status == 0)
            let own = Self.names(command, "out")
            #expect(own.count > 0 && own.count < 20)
            #expect(origin.log.snapshot().requests.count == 20 + own.count)
            #expect(try await task(2).status == 0)
            #expect(Self.names(command, "out") == names)
            for number in 1...2 {
                let again = try await task(number)
                #expect(again.errors.contains("0 files finished, "), "\(again)")
            }
            #expect(origin.log.snapshot().requests.count == 40)
        }
    }

    @Test("A finished file that was changed is not reported as done, and one that was only touched is asked for once")
    func changed() async throws {
        try await Self.withList(3) { command, origin in
            let run = { try await command.run("--job", "j", "-i", "list", "-d", "out") }
            #expect(try await run().status == 0)
            let time = timespec(tv_sec: 1_000_000_000, tv_nsec: 0)
            utimensat(AT_FDCWD, command.path("out/f0"), [time, time], 0)
            let touched = try await run()
            #expect(touched.status == 0 && touched.errors.contains("1 files finished, 2 before"), "\(touched)")
            var log = origin.log.snapshot()
            #expect(log.requests.count == 4 && log.bytesSent == 3 << 10, "\(log.requests)")
            let second = try await run()
            #expect(second.errors.contains("0 files finished, 3 before"), "\(second)")

            let bytes = [UInt8](repeating: 7, count: 1 << 10)
            try Self.write(bytes, to: command.path("out/f1"))
            for _ in 0..<2 {
                let outcome = try await run()
                #expect(outcome.status == 16 && outcome.errors.contains("1 failed"), "\(outcome)")
                let kept = try Self.contents(command, "out/f1")
                #expect(kept == Data(bytes))
            }
            #expect(try await command.run("status", "--job", "j").status == 16)
            let replaced = try await command.run("--job", "j", "-i", "list", "-d", "out", "--if-exists", "overwrite")
            #expect(replaced.status == 0 && replaced.errors.contains("1 files finished, 2 before"), "\(replaced)")
            let new = try Self.contents(command, "out/f1")
            #expect(new != Data(bytes))
            log = origin.log.snapshot()
            let last = try await run()
            #expect(last.errors.contains("0 files finished, 3 before"), "\(last)")
            #expect(origin.log.snapshot().requests.count == log.requests.count)
        }
    }

    @Test("With another header field or user, what is finished for other requests is not reported as done")
    func otherSelection() async throws {
        try await Self.withList(2) { command, _ in
            let run = { (words: [String]) in
                try await command.run(["--job", "j", "-i", "list", "-d", "out"] + words)
            }
            let first = try await run([])
            #expect(first.status == 0, "\(first)")
            for words in [["-H", "Accept-Language: en"], ["-u", "a:b"]] {
                let other = try await run(words)
                #expect(other.status == 16 && other.errors.contains("0 files finished, 2 failed"), "\(other)")
                let same = try await run([])
                #expect(same.status == 0 && same.errors.contains("0 files finished, 2 before"), "\(same)")
                let replaced = try await run(words + ["--if-exists", "overwrite"])
                #expect(replaced.status == 0 && replaced.errors.contains("2 files finished"), "\(replaced)")
                let again = try await run(words)
                #expect(again.status == 0 && again.errors.contains("0 files finished, 2 before"), "\(again)")
                // For the next field.
                let back = try await run(["--if-exists", "overwrite"])
                #expect(back.status == 0 && back.errors.contains("2 files finished"), "\(back)")
            }
        }
    }

    @Test("An entry whose response names the file of another entry has failed, and the others are fetched")
    func namesOfResponses() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let name = "?disposition=attachment;%20filename=%22same.bin%22"
                let list = ["/1K/a\(name)", "/2K/b\(name)", "/1K/c.bin", "/1K/d.bin"].map { origin.url($0) + "\n" }
                try Data(list.joined().utf8).write(to: URL(fileURLWithPath: command.path("list")))
                let arguments = ["--job", "j", "-i", "list", "-d", "out", "-j", "1", "--if-exists", "overwrite"]
                for _ in 0..<3 {
                    let outcome = try await command.run(arguments)
                    #expect(outcome.status == 16 && outcome.errors.contains("1 failed"), "\(outcome)")
                    #expect(Self.names(command, "out").isSuperset(of: ["same.bin", "c.bin", "d.bin"]))
                    let failed = try await command.run("status", "--job=j", "--failed")
                    #expect(failed.output.contains("has the same destination"), "\(failed)")
                    // That of the first entry.
                    #expect(try Self.contents(command, "out/same.bin").count == 1 << 10)
                }
                #expect(try await command.run("status", "--job", "j").status == 16)
            }
        }
    }

    @Test("A file that --if-exists skip keeps is no finished one, so the next run looks at it again")
    func keptUnproven() async throws {
        try await Self.withList(2) { command, _ in
            let arguments = ["--job", "j", "-i", "list", "-d", "out"]
            try FileManager.default.createDirectory(atPath: command.path("out"), withIntermediateDirectories: false)
            try Data("another".utf8).write(to: URL(fileURLWithPath: command.path("out/f0")))
            for _ in 0..<2 { #expect(try await command.run(arguments + ["--if-exists", "skip"]).status == 0) }
            let outcome = try await command.run(arguments)
            #expect(
                outcome.status == 16 && outcome.errors.contains("0 files finished, 1 before, 1 failed"), "\(outcome)")
        }
    }

    @Test("Files with names from responses, and numbered ones, are found again under these names")
    func chosenNames() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let named = origin.url("/1K/x?disposition=attachment;filename=given.bin")
                try Data("\(named)\n\(origin.url("/1K/taken"))\n".utf8).write(
                    to: URL(fileURLWithPath: command.path("list")))
                try FileManager.default.createDirectory(atPath: command.path("out"), withIntermediateDirectories: false)
                try Data("another".utf8).write(to: URL(fileURLWithPath: command.path("out/taken")))
                let run = {
                    try await command.run("--job", "j", "-i", "list", "-d", "out", "--if-exists", "rename")
                }
                let names: Set = ["given.bin", "taken", "taken.1"]
                #expect(try await run().status == 0)
                #expect(Self.names(command, "out") == names)
                let requests = origin.log.snapshot().requests.count
                let again = try await run()
                #expect(again.errors.contains("0 files finished, 2 before"), "\(again)")
                #expect(origin.log.snapshot().requests.count == requests)
                for name in ["given.bin", "taken.1"] {
                    try FileManager.default.removeItem(atPath: command.path("out/\(name)"))
                    let outcome = try await run()
                    #expect(outcome.errors.contains("1 files finished, 1 before"), "\(outcome)")
                    #expect(Self.names(command, "out") == names)
                }
            }
        }
    }

    @Test(
        "Failed entries do not stop the others; their list is an input, and the job is complete once they are fetched")
    func failures() async throws {
        try await Self.withList(30, query: { $0 % 10 == 3 ? "?fail=404:2" : "" }) { command, origin in
            let list = ["--job", "records", "-i", "list", "-d", "out"]
            let outcome = try await command.run(list)
            #expect(outcome.status == 16, "\(outcome)")
            #expect(Self.names(command, "out").count == 27)
            let status = try await command.run("status", "--job", "records")
            #expect(status.status == 16 && status.output.contains("task 1/1: ended with 3 failed"), "\(status)")
            let failed = try await command.run("status", "--job=records", "--failed")
            #expect(failed.output.contains("# server: ") && failed.output.contains("  out=f13\n"), "\(failed)")
            try Data(failed.output.utf8).write(to: URL(fileURLWithPath: command.path("again")))
            #expect(try await command.run("--dry-run", "-i", "again", "-d", "out").status == 0)

            #expect(try await command.run(list).status == 0)
            #expect(Self.names(command, "out").count == 30)
            let end = try await command.run("status", "--job", "records", "--json")
            #expect(end.status == 0, "\(end)")
            let job = try #require(end.events.first)
            #expect(job["is_complete"] as? Bool == true && job["files_finished"] as? Int == 30, "\(job)")
            #expect(end.events.last?["state"] as? String == "finished")
            #expect(try await command.run("status", "--job", "records", "--failed").output.isEmpty)
        }
    }

    @Test("A task that is killed and run again fetches only what is missing")
    func interruption() async throws {
        try await Self.withList(40, query: { [12, 13].contains($0) ? "?stall-after=100" : "" }) { command, origin in
            let arguments = ["--shard", "1/1", "-i", "list", "-d", "out", "-j", "2", "--json"]
            let outcome = try await command.run(
                arguments, once: Segdl.hasPrinted(#""event":"completed""#, moreThan: 5), "kill -KILL $$")
            #expect(outcome.status == -SIGKILL)
            let before = origin.log.snapshot().requests.count
            // A header, and a record of 16 bytes for each finished entry.
            let finished = try #require(Self.names(command, "list.segdl-job").first { $0.hasSuffix(".finished") })
            let length = try Data(contentsOf: URL(fileURLWithPath: command.path("list.segdl-job/\(finished)"))).count
            let recorded = length / 16 - 1
            #expect(recorded > 0)
            let again = try await command.run(arguments)
            #expect(again.status == 0, "\(again)")
            #expect(Self.names(command, "out").filter { !$0.contains("segdl") }.count == 40)
            // By files, not by requests: the two that stall are asked again, unless they had stalled before the kill.
            let asked = Set(origin.log.snapshot().requests[before...].map(\.path))
            #expect(asked.count == 40 - recorded)
        }
    }

    @Test(
        "Without extended attributes, a file in place that is not recorded as finished is recognized in the next run",
        .enabled(if: FaultyDisk.compiler != nil, "a failing disk needs a C compiler"))
    func unrecorded() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                // Longer files than those that are kept in memory, which have no part. The first one comes at once.
                let list = (0..<3).map { origin.url("/2M/f\($0)\($0 > 0 ? "?rate=2M" : "")") + "\n  out=f\($0)\n" }
                try Data(list.joined().utf8).write(to: URL(fileURLWithPath: command.path("list")))
                let arguments = ["--job", "records", "-i", "list", "-d", "out", "-j", "1"]
                // The task is killed in place of the second file's rename. Without its record, the first file is as if the
                // task had been killed between the file's name and its record.
                let killed = try await command.run(
                    arguments + ["--fsync", "none"],
                    environment: [
                        "LD_PRELOAD": try await FaultyDisk.library.value,
                        "FAULTY_DISK": "fsetxattr:95,renameat2:kill:1",
                    ])
                #expect(killed.status == -SIGKILL)
                let records = Self.names(command, "records")
                #expect(records.contains { $0.hasSuffix(".placing") }, "\(records)")
                for name in records where name.hasSuffix(".finished") {
                    try FileManager.default.removeItem(atPath: command.path("records/\(name)"))
                }
                let before = origin.log.snapshot().requests.count { $0.path.hasSuffix("f0") }
                let again = try await command.run(arguments)
                #expect(again.status == 0, "\(again)")
                #expect(origin.log.snapshot().requests.count { $0.path.hasSuffix("f0") } == before)
                #expect(Self.names(command, "out") == ["f0", "f1", "f2"])
                #expect(Self.names(command, "records").allSatisfy { !$0.hasSuffix(".placing") })
            }
        }
    }

    @Test(
        "The same job without --range, or with a name template, is refused: it would skip the parts as finished files")
    func otherContent() async throws {
        try await Self.withList(2) { command, _ in
            let arguments = ["--shard", "1/1", "-i", "list", "-d", "out"]
            #expect(try await command.run(arguments + ["--range", "0-99"]).status == 0)
            let whole = try await command.run(arguments)
            #expect(whole.status == 2, "\(whole)")
            #expect(whole.errors.contains("saves bytes 0-99 of each file, not whole files"), "\(whole)")
            let named = try await command.run(arguments + ["--range", "0-99", "--name-template", "{id}"])
            #expect(named.status == 2 && named.errors.contains("template \"{id}\""), "\(named)")
            #expect(try await command.run(arguments + ["--range", "0-99"]).status == 0)
        }
    }

    @Test("A task that runs already is refused, as is another number of tasks")
    func running() async throws {
        try await Self.withList(3, query: { _ in "?stall-after=100:all" }) { command, origin in
            let first = try await command.run(["--json", "--job", "j", "-i", "list", "-d", "out"]) { process in
                await command.waitForReport { $0.contains { $0["event"] as? String == "started" } }
                let second = try? await command.run("--job", "j", "-i", "list", "-d", "out")
                #expect(
                    second?.status == 12 && second?.errors.contains("is being run by process \(process)") == true,
                    "\(String(describing: second))")
                let third = try? await command.run("--shard", "1/3", "--job", "j", "-i", "list", "-d", "out")
                #expect(
                    third?.status == 12 && third?.errors.contains("with 1 task ") == true,
                    "\(String(describing: third))")
                kill(process, SIGTERM)
            }
            #expect(first.status == 143, "\(first)")
            let status = try await command.run("status", "--job", "j")
            #expect(status.status == 16 && status.output.contains("1 task: 1 stopped"), "\(status)")
        }
    }

    @Test("A malformed entry is one failed entry; a malformed list ends the run after the entries before it")
    func malformed() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let good = (0..<3).map { origin.url("/1K/f\($0)") + "\n" }
                let write = { (text: String) in
                    try Data(text.utf8).write(to: URL(fileURLWithPath: command.path("list")))
                }
                try write(good[0] + "gopher://x/y\n" + good[1] + origin.url("/1K/z") + "\n  no-such=1\n" + good[2])
                let outcome = try await command.run("--job", "a", "-i", "list", "-d", "out")
                #expect(outcome.status == 16, "\(outcome)")
                #expect(Self.names(command, "out") == ["f0", "f1", "f2"])
                let failed = try await command.run("status", "--job", "a", "--failed").output
                #expect(failed.contains("gopher://x/y\n") && failed.contains("  no-such=1\n"), "\(failed)")

                // The second entry might have options in the third line.
                try write(good[0] + good[1] + "\u{0}\n" + good[2])
                let broken = try await command.run("--job", "b", "-i", "list", "-d", "other")
                #expect(broken.status == 2 && broken.errors.contains("list:3: "), "\(broken)")
                #expect(Self.names(command, "other") == ["f0"])
            }
        }
    }

    @Test(
        "The task comes from the scheduler's variables",
        arguments: [
            (
                [
                    "SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_MAX": "8",
                    "SLURM_ARRAY_TASK_COUNT": "4",
                ], "3/4"
            ),
            (
                [
                    "SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "9",
                    "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_COUNT": "5",
                ], "5/5"
            ),
            (
                [
                    "SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4",
                    "SLURM_NTASKS": "8",
                ], "4/4"
            ),
            (["SLURM_PROCID": "0", "SLURM_NTASKS": "2"], "1/2"),
            (
                [
                    "SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2",
                    "SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "3",
                    "SLURM_ARRAY_TASK_COUNT": "3",
                ], "2/6"
            ),
        ])
    func scheduler(variables: [String: String], task: String) async throws {
        try await Self.withList(1) { command, _ in
            let outcome = try await command.run(["--shard", "auto", "-i", "list", "-d", "out"], environment: variables)
            #expect(outcome.status == 0 && outcome.errors.contains("task \(task) of"), "\(outcome)")
        }
    }

    @Test("With auto/N only the number comes from the environment, and what says nothing is refused")
    func schedulerWithCount() async throws {
        try await Self.withList(1) { command, _ in
            let arguments = { (shard: String) in ["--shard", shard, "-i", "list", "-d", "out"] }
            let pod = try await command.run(arguments("auto/8"), environment: ["JOB_COMPLETION_INDEX": "2"])
            #expect(pod.status == 0 && pod.errors.contains("task 3/8 of"), "\(pod)")
            // The second task of a step of two, in the second task of an array: of 0 to 5 it is 3.
            let step = [
                "SLURM_JOB_ID": "1", "SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2",
                "SLURM_ARRAY_TASK_ID": "1",
            ]
            let task = try await command.run(arguments("auto/6"), environment: step)
            #expect(task.status == 0 && task.errors.contains("task 4/6 of"), "\(task)")
            let refused: [(String, [String: String])] = [
                ("auto/3", step), ("auto", [:]), ("auto", ["JOB_COMPLETION_INDEX": "2"]),
                ("auto/2", ["JOB_COMPLETION_INDEX": "2"]),
                // A batch script without srun: three of four tasks would never run.
                ("auto", ["SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "SLURM_NTASKS": "4"]),
                // --array=3,5
                (
                    "auto",
                    [
                        "SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_MAX": "5",
                        "SLURM_ARRAY_TASK_COUNT": "2",
                    ]
                ),
                ("0/4", [:]), ("5/4", [:]),
            ]
            for (shard, variables) in refused {
                let outcome = try await command.run(arguments(shard), environment: variables)
                #expect(outcome.status == 2, "\(shard) \(variables): \(outcome)")
            }
            #expect(!command.exists("list.segdl-job/shard-1-of-2.json"))
        }
    }

    @Test(
        "A variable of a scheduler that is no number of a task is named with its value",
        arguments: [
            ("auto/4", "JOB_COMPLETION_INDEX", "\(Int.max)"), ("auto/4", "JOB_COMPLETION_INDEX", "-1"),
            ("auto/4", "JOB_COMPLETION_INDEX", "x"), ("auto/4", "SLURM_PROCID", "\(Int.max)"),
            ("auto/4", "SLURM_ARRAY_TASK_ID", "\(Int.max)"), ("auto", "SLURM_PROCID", "\(Int.max)"),
            ("auto", "SLURM_NTASKS", "\(Int.max)"), ("auto", "SLURM_STEP_NUM_TASKS", "-1"),
            ("auto", "SLURM_ARRAY_TASK_COUNT", "-1"), ("auto", "SLURM_ARRAY_TASK_ID", "\(Int.min)"),
            ("auto", "SLURM_ARRAY_TASK_MIN", "\(Int.min)"), ("auto", "SLURM_ARRAY_TASK_STEP", "\(Int.max)0"),
            ("auto", "SLURM_ARRAY_TASK_MAX", "9999999999"),
        ])
    func schedulerNumbers(shard: String, name: String, value: String) async throws {
        try await Self.withList(1) { command, _ in
            var variables =
                name.contains("ARRAY")
                ? [
                    "SLURM_ARRAY_TASK_ID": "1", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "2",
                    "SLURM_ARRAY_TASK_COUNT": "2",
                ] : ["SLURM_PROCID": "0", "SLURM_NTASKS": "2"]
            variables[name] = value
            let outcome = try await command.run(
                ["--shard", shard, "-i", "list", "-d", "out"], environment: variables)
            #expect(outcome.status == 2 && outcome.errors.contains("\(name) is \(value), and not a"), "\(outcome)")
        }
    }

    @Test("With a umask of 002 tasks run, resume and report, and no record can be written by the group")
    func umask() async throws {
        try await Self.withList(30, query: { $0 == 7 ? "?fail=404:2" : "" }) { command, _ in
            let run = { (arguments: [String]) in
                try await command.run(arguments, shell: #"umask 002; "$0" "$@""#)
            }
            let tasks = (1...2).map { ["--shard", "\($0)/2", "-i", "list", "-d", "out"] }
            // Several runs, so that records are joined.
            for round in 0..<6 {
                let statuses = try await [run(tasks[0]).status, run(tasks[1]).status]
                #expect(statuses.sorted() == (round == 0 ? [0, 16] : [0, 0]))
                let directory = command.path("list.segdl-job")
                for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
                    let facts = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
                    #expect((facts[.posixPermissions] as? Int ?? 0o777) & 0o022 == 0, "\(name)")
                }
                let failed = try await run(["status", "--job", "list.segdl-job", "--failed"])
                #expect(failed.output.contains("out=f7") == (round == 0), "\(failed)")
            }
            let status = try await run(["status", "--job", "list.segdl-job"])
            #expect(status.status == 0 && status.output.contains("2 tasks: 2 finished; 30 files"), "\(status)")
        }
    }

    @Test("Options for one file, and another directory for the same job, are refused")
    func refusals() async throws {
        try await Self.withList(2) { command, _ in
            for words in [
                ["--checksum", "md5=00112233445566778899aabbccddeeff"], ["-o", "-"], ["--dry-run"], ["--id", "x"],
                ["--checksum-from", "list"],
            ] {
                let outcome = try await command.run(["--job", "records", "-i", "list"] + words)
                #expect(outcome.status == 2 && outcome.errors.contains("--job"), "\(words): \(outcome)")
            }
            #expect(try await command.run("--job", "records", "-i", "list", "-d", "a").status == 0)
            let other = try await command.run("--job", "records", "-i", "list", "-d", "b")
            #expect(other.status == 2 && other.errors.contains("saves files in"), "\(other)")
            let nameless = try await command.run("--shard", "1/2", "http://127.0.0.1:1/a")
            #expect(nameless.status == 2 && nameless.errors.contains("--job"), "\(nameless)")
            let none = try await command.run("status", "--job", "a")
            #expect(none.status == 14, "\(none)")
        }
    }

    @Test("URLs, metalinks and pages are divided as well, and standard input is read")
    func sources() async throws {
        try await withOrigin { origin in
            origin.route { $0.path.hasSuffix("/dir/") ? .document("<a href=a.bin><a href=b.bin>") : .content("/1K/x") }
            try await withCommand { command in
                for task in ["1/2", "2/2"] {
                    let outcome = try await command.run(
                        "--shard", task, "--job", "a", "-d", "out", "--list-from", origin.url("/dir/"),
                        origin.url("/p[1-3].bin"))
                    #expect(outcome.status == 0, "\(outcome)")
                }
                #expect(Self.names(command, "out") == ["a.bin", "b.bin", "p1.bin", "p2.bin", "p3.bin"])
                let outcome = try await command.run(
                    ["--job", "b", "-i", "-", "-d", "in"], shell: "echo '\(origin.url("/s.bin"))' | \"$0\" \"$@\"")
                #expect(outcome.status == 0 && Self.names(command, "in") == ["s.bin"], "\(outcome)")
            }
        }
    }

    /// Runs `body` with a directory in memory, as `XDG_RUNTIME_DIR` is.
    private static func withRuntimeDirectory(_ body: (String) async throws -> Void) async throws {
        let path = "/dev/shm/segdl-test-\(UUID().uuidString)"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await body(path)
    }

    @Test("A task sends no request to a host that has told another task of the machine to wait")
    func sharedRefusal() async throws {
        try await Self.withRuntimeDirectory { runtime in
            try await withOrigin { origin in
                try await withCommand { command in
                    let variables = ["XDG_RUNTIME_DIR": runtime]
                    let first = ["--json", "--job", "a", "-d", "one", origin.url("/1K/a?fail=429:1&retry-after=600")]
                    let second = ["--json", "--job", "b", "-d", "two", origin.url("/1K/b")]
                    let outcome = try await command.run(first, environment: variables) { process in
                        await origin.log.waitForRequests(1)
                        await command.waitForReport { $0.contains { $0["event"] as? String == "retry" } }
                        let other = try? await command.run(second, environment: variables) { other in
                            await command.waitForReport { $0.contains { $0["event"] as? String == "note" } }
                            kill(other, SIGTERM)
                        }
                        let note = other?.event("note")?["message"] as? String
                        #expect(
                            other?.status == 143 && note?.contains("refused a request of another process") == true,
                            "\(String(describing: other))")
                        #expect(origin.log.snapshot().requests.map(\.status) == [429])
                        // What the first task was told does not concern other hosts and users, nor runs without a job.
                        for other in [second, [origin.url("/1K/c")]] {
                            let runtime = other == second ? "\(runtime)/none" : runtime
                            let outcome = try? await command.run(other, environment: ["XDG_RUNTIME_DIR": runtime])
                            #expect(outcome?.status == 0, "\(String(describing: outcome))")
                        }
                        kill(process, SIGTERM)
                    }
                    #expect(outcome.status == 143, "\(outcome)")
                }
            }
        }
    }

    @Test(
        "Two tasks of a machine fetch all files of a server that serves one request at a time, and are rarely refused")
    func turns() async throws {
        try await Self.withRuntimeDirectory { runtime in
            try await withOrigin { origin in
                // One limit for all files, each of which takes a quarter of a second.
                origin.route { _ in .content("/32K/x?limit=1&limit-status=503&rate=131072") }
                try await withCommand { command in
                    let variables = ["XDG_RUNTIME_DIR": runtime]
                    // One connection for each task.
                    let arguments = ["--job", "j", "-x", "2", "-d", "out", origin.url("/p[1-12].bin")]
                    let outcome = try await command.run(["--shard", "1/2"] + arguments, environment: variables) { _ in
                        let other = try? await command.run(["--shard", "2/2"] + arguments, environment: variables)
                        #expect(other?.status == 0, "\(String(describing: other))")
                    }
                    #expect(outcome.status == 0, "\(outcome)")
                    #expect(Self.names(command, "out").count == 12)
                    let requests = origin.log.snapshot().requests
                    #expect(requests.count { $0.status == 503 } <= 12, "\(requests)")
                }
            }
        }
    }

    @Test("A task that waits because another one was refused continues when the time is over")
    func sharedRefusalEnds() async throws {
        try await Self.withRuntimeDirectory { runtime in
            try await withOrigin { origin in
                try await withCommand { command in
                    let variables = ["XDG_RUNTIME_DIR": runtime]
                    let first = ["--json", "--job", "a", "-d", "one", origin.url("/1K/a?fail=429:1&retry-after=3")]
                    let second = ["--job", "b", "-d", "two", origin.url("/1K/b")]
                    let outcome = try await command.run(first, environment: variables) { _ in
                        await command.waitForReport { $0.contains { $0["event"] as? String == "retry" } }
                        let other = try? await command.run(second, environment: variables)
                        #expect(other?.status == 0, "\(String(describing: other))")
                    }
                    #expect(outcome.status == 0, "\(outcome)")
                    let requests = origin.log.snapshot().requests
                    #expect(requests.map { $0.status == 429 } == [true, false, false], "\(requests)")
                    let refusedAt = try #require(requests.first).time
                    // What the origin recorded, not how long anything took: none came before the time was over.
                    #expect(requests.dropFirst().allSatisfy { $0.time - refusedAt >= .seconds(3) }, "\(requests)")
                }
            }
        }
    }
}
