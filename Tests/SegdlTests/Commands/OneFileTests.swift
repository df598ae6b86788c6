import Foundation
import Origin
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// `--one-file` and `segdl assemble`: one file that several tasks fetch.
@Suite("One file on many machines")
struct OneFileTests {
    private static let length: Int64 = 9 << 20

    private static func arguments(_ task: String, _ url: String, _ options: [String] = []) -> [String] {
        ["--progress", "none", "--shard", task, "--one-file", "-o", "f.bin"] + options + [url]
    }

    /// The names besides the file's.
    private static func others(_ command: Segdl) throws -> [String] { try command.names.filter { $0 != "f.bin" } }

    @Test("Tasks that run at the same time make the file together, and each byte is fetched once")
    func together() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin")
            let outcomes = try await withThrowingTaskGroup(of: Segdl.Outcome.self) { tasks in
                for number in 1...4 {
                    tasks.addTask { try await command.run(Self.arguments("\(number)/4", url, ["--json", "-s", "1"])) }
                }
                return try await tasks.reduce(into: []) { $0.append($1) }
            }
            #expect(outcomes.allSatisfy { $0.status == 0 }, "\(outcomes)")
            let assembled = outcomes.compactMap { $0.event("assembled") }
            #expect(!assembled.isEmpty && assembled.allSatisfy { $0["tasks"] as? Int == 4 }, "\(outcomes)")
            #expect(command.holds("f.bin", Self.length))
            #expect(try Self.others(command).isEmpty)
            // Besides, each task asks for the first byte. With a second connection, what it takes over may have been sent already.
            #expect(origin.log.snapshot().bytesSent <= Self.length + 4)
            let again = try await command.run(Self.arguments("2/4", url))
            #expect(again.status == 0 && again.errors.contains("already complete"), "\(again)")
        }
    }

    @Test("Killed tasks are run again, and go on where they were")
    func killed() async throws {
        // 9 MiB each: shorter ranges have no manifest for the first five seconds.
        try await withOptionScene { origin, command in
            let url = origin.url("/27M/f.bin?rate=2M")
            let first = try await command.run(Self.arguments("1/3", url, ["-s", "1"]))
            #expect(first.status == 0 && first.errors.contains("waiting for 2 of 3 tasks (2/3, 3/3)"), "\(first)")
            for number in 2...3 {
                let killed = try await command.run(
                    Self.arguments("\(number)/3", url, ["-s", "1"]), signal: SIGKILL, afterWriting: 4 << 20)
                #expect(killed.status == -SIGKILL, "\(killed)")
            }
            let status = try await command.run("status", "--json", "f.bin").events
            #expect(status.map { $0["task"] as? Int } == [1, 2, 3])
            let done = status.compactMap { $0["bytes_done"] as? Int }
            #expect(done.count == 3 && done[0] == 9 << 20 && done[1] >= 1 << 20 && done[2] < 9 << 20, "\(done)")
            #expect(
                try await command.run("status", "f.bin").output.contains("f.bin, task 1/3: 9.00 of 9.00 MiB (100%)"))
            let early = try await command.run("assemble", "f.bin")
            #expect(early.status == 14 && early.errors.contains("waiting for 2 of 3 tasks"), "\(early)")
            let second = try await command.run(Self.arguments("2/3", url, ["--json"]))
            #expect(second.status == 0 && !command.exists("f.bin"), "\(second)")
            let fetched = try #require(second.event("completed")?["bytes_fetched"] as? Int)
            // Two connections may have fetched the same bytes, for at most a segment.
            #expect(fetched <= (10 << 20) - done[1], "\(second)")
            let third = try await command.run(Self.arguments("3/3", url))
            #expect(third.status == 0 && third.errors.contains("f.bin is complete: 27.0 MiB from 3 tasks"), "\(third)")
            #expect(command.holds("f.bin", 27 << 20))
            #expect(try Self.others(command).isEmpty)
        }
    }

    @Test("A kill costs each connection at most the bytes after its last claim, whenever the part was last synced")
    func killedBeforeCheckpoint() async throws {
        try await withOptionScene { origin, command in
            // 100 KiB after the tenth claim of 512 KiB the response stops, so that there is nothing in flight.
            let claimed = 5 << 20
            let stop = claimed + (100 << 10)
            let url = origin.url("/18M/f.bin?stall-after=\(stop):all")
            let killed = try await command.run(
                Self.arguments("1/2", url, ["-s", "1"]), signal: SIGKILL, afterWriting: stop)
            #expect(killed.status == -SIGKILL, "\(killed)")
            let again = try await command.run(Self.arguments("1/2", url, ["-s", "1", "--json"]))
            #expect(again.status == 0, "\(again)")
            #expect(again.event("started")?["resumed_from"] as? Int == claimed, "\(again)")
            #expect(again.event("completed")?["bytes_fetched"] as? Int == (9 << 20) - claimed, "\(again)")
        }
    }

    @Test("Tasks that are done fetch what a killed one has not claimed, and the file is complete without it")
    func takenOver() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/27M/f.bin?rate=2M")
            let killed = try await command.run(
                Self.arguments("2/3", url, ["-s", "1"]), signal: SIGKILL, afterWriting: 4 << 20)
            #expect(killed.status == -SIGKILL, "\(killed)")
            let done = try await command.run("status", "--json", "f.bin").events.compactMap { $0["bytes_done"] as? Int }
            #expect(done.count == 3 && done[1] >= 3 << 20, "\(done)")
            let outcomes = try await withThrowingTaskGroup(of: Segdl.Outcome.self) { tasks in
                for task in ["1/3", "3/3"] {
                    tasks.addTask {
                        try await command.run(Self.arguments(task, url, ["--json", "--steal-after", "10s"]))
                    }
                }
                return try await tasks.reduce(into: []) { $0.append($1) }
            }
            #expect(outcomes.allSatisfy { $0.status == 0 }, "\(outcomes)")
            #expect(command.holds("f.bin", 27 << 20))
            #expect(try Self.others(command).isEmpty)
            let pieces = outcomes.flatMap(\.events).filter {
                $0["event"] as? String == "completed" && ($0["path"] as? String)?.contains("2-of-3.piece-") == true
            }
            let fetched = pieces.reduce(0) { $0 + ($1["bytes_fetched"] as? Int ?? 0) }
            // Several connections may have fetched the same bytes, for at most a segment of each of the two tasks.
            #expect(pieces.count >= 9 && fetched <= (11 << 20) - done[1], "\(fetched) of \(pieces)")
            let late = try await command.run(Self.arguments("2/3", url, ["--steal-after", "10s"]))
            #expect(late.status == 0 && late.errors.contains("already complete"), "\(late)")
        }
    }

    @Test("A task that was never started is not waited for longer than stated")
    func takenOverFromTheAbsent() async throws {
        try await withOptionScene { origin, command in
            let outcome = try await command.run(
                Self.arguments("1/2", origin.url("/9M/f.bin"), ["--steal-after", "10s"]))
            #expect(outcome.status == 0, "\(outcome)")
            let message = "segdl: task 2/2 has recorded no progress for 10 s: fetching piece 1 of 4 of its range\n"
            #expect(outcome.errors.contains(message), "\(outcome)")
            #expect(outcome.errors.contains("f.bin is complete: 9.00 MiB from 2 tasks"), "\(outcome)")
            #expect(command.holds("f.bin", Self.length))
            #expect(try Self.others(command).isEmpty)
        }
    }

    @Test("A task says how long it waits for a server that is busy, and does not wait longer than any download")
    func busyServer() async throws {
        try await withOptionScene { origin, command in
            for time in ["100000", "9223372036854775807"] {
                let refused = try await command.run(
                    Self.arguments("1/2", origin.url("/9M/f.bin?fail=503:all&retry-after=\(time)")))
                #expect(refused.status == 8 && refused.errors.contains("answered 503 and asks to wait"), "\(refused)")
            }
            let waited = try await command.run(
                Self.arguments("1/1", origin.url("/9M/f.bin?fail=503:1&retry-after=1")))
            #expect(waited.status == 0 && command.holds("f.bin", Self.length), "\(waited)")
            #expect(waited.errors.contains("segdl: retry 1 in 1.0 s: "), "\(waited)")
        }
    }

    @Test("A range is taken over only if both tasks must write the same bytes")
    func takenOverUnsafely() async throws {
        try await withOptionScene { origin, command in
            let options = ["--steal-after", "1m"]
            let mirrored = try await command.run(
                Self.arguments("1/2", origin.url("/9M/f.bin"), options + ["--mirror", origin.url("/9M/g.bin")]))
            #expect(mirrored.status == 2 && mirrored.errors.contains("must have one source"), "\(mirrored)")
            #expect(try command.names.isEmpty && origin.log.snapshot().requests.isEmpty)
            let url = origin.url("/9M/f.bin?etag=none&last-modified=none")
            let digest = ["--checksum", "md5=00112233445566778899aabbccddeeff"]
            let unproven = try await command.run(Self.arguments("1/2", url, options + digest))
            #expect(unproven.status == 7 && unproven.errors.contains("none can take over"), "\(unproven)")
            #expect(origin.log.snapshot().bytesSent <= 2, "nothing but the probes")
        }
    }

    @Test("A plan with several sources says what to remove, so that ranges can be taken over")
    func takenOverFromMirrored() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin")
            let first = try await command.run(Self.arguments("1/2", url, ["--mirror", origin.url("/9M/g.bin")]))
            #expect(first.status == 0, "\(first)")
            let second = try await command.run(Self.arguments("2/2", url, ["--steal-after", "1m"]))
            #expect(second.status == 2 && second.errors.contains("remove f.bin.segdl-tasks"), "\(second)")
            try FileManager.default.removeItem(atPath: command.path("f.bin.segdl-tasks"))
            for number in 1...2 {
                let options = number == 2 ? ["--steal-after", "1m"] : []
                #expect(try await command.run(Self.arguments("\(number)/2", url, options)).status == 0)
            }
            #expect(command.holds("f.bin", Self.length))
        }
    }

    @Test("With a umask of 002 no record can be written by the group, so that every command reads them")
    func umask() async throws {
        try await withOptionScene { origin, command in
            let run = { (arguments: [String]) in
                try await command.run(arguments, shell: #"umask 002; "$0" "$@""#)
            }
            // Slow enough that the second task is killed while it runs.
            let url = origin.url("/9M/f.bin?rate=2M")
            #expect(try await run(Self.arguments("1/2", url)).status == 0)
            let directory = command.path("f.bin.segdl-tasks")
            for name in try FileManager.default.contentsOfDirectory(atPath: directory) {
                let mode = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")[.posixPermissions]
                #expect((mode as? Int ?? 0o777) & 0o022 == 0, "\(name): \(mode ?? "")")
            }
            #expect(try await run(["status", "f.bin"]).output.contains("task 1/2: 5.00 of 5.00 MiB (100%)"))
            let killed = try await command.run(
                Self.arguments("2/2", url, ["-s", "1"]), signal: SIGKILL, afterWriting: 1 << 20,
                preparation: "umask 002;")
            #expect(killed.status == -SIGKILL, "\(killed)")
            #expect(try await run(["assemble", "f.bin"]).status == 14)
            let resumed = try await run(Self.arguments("2/2", url, ["--json"]))
            #expect(resumed.status == 0, "\(resumed)")
            #expect(command.holds("f.bin", Self.length))
            #expect(try Self.others(command).isEmpty)
        }
    }

    @Test("A file whose stated length no disk holds is refused, and nothing is left")
    func impossibleLength() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/\(Int64.max)/f.bin")
            for task in ["1/2", "2/2"] {
                let outcome = try await command.run(Self.arguments(task, url))
                #expect(outcome.status == 13 && outcome.errors.contains("more than any disk holds"), "\(outcome)")
            }
            #expect(try command.names.isEmpty)
        }
    }

    @Test("A failure is an event, and runs the hook, as for any file")
    func failureEvents() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin")
            #expect(try await command.run(Self.arguments("1/3", url)).status == 0)
            let options = ["--json", "--on-error", "cat > hook"]
            let other = try await command.run(Self.arguments("2/4", url, options))
            #expect(other.status == 12, "\(other)")
            #expect(other.event("failed")?["code"] as? String == "exists", "\(other)")
            #expect(other.event("failed")?["path"] as? String == "f.bin", "\(other)")
            #expect(other.event("all_completed")?["exit"] as? Int == 12, "\(other)")
            #expect(command.exists("hook"))
            try FileManager.default.removeItem(atPath: command.path("f.bin.segdl-tasks"))
            try command.write("mine", to: "f.bin")
            let existing = try await command.run(Self.arguments("1/2", url, options))
            #expect(existing.status == 12 && existing.event("failed")?["exit"] as? Int == 12, "\(existing)")
            #expect(existing.event("all_completed")?["failed"] as? Int == 1, "\(existing)")
        }
    }

    @Test("Directories with the names of records are ignored, and stay")
    func foreignDirectories() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin")
            let foreign = "f.bin.segdl-tasks/2-of-2.piece-0.zz"
            try FileManager.default.createDirectory(
                atPath: command.path(foreign), withIntermediateDirectories: true)
            #expect(try await command.run(Self.arguments("1/2", url)).status == 0)
            let status = try await command.run("status", "f.bin")
            #expect(status.status == 0 && status.output.contains("task 2/2: 0 "), "\(status)")
            let last = try await command.run(Self.arguments("2/2", url))
            #expect(last.status == 0, "\(last)")
            #expect(command.holds("f.bin", Self.length))
            let left = try FileManager.default.contentsOfDirectory(atPath: command.path("f.bin.segdl-tasks"))
            #expect(left == ["2-of-2.piece-0.zz"], "\(left)")
        }
    }

    @Test("A task that fails is reported as failed, not as stopped")
    func failedStatus() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin?fail=404:9:1")
            let outcome = try await command.run(Self.arguments("1/2", url))
            #expect(outcome.status == 8, "\(outcome)")
            let status = try await command.run("status", "--job", "f.bin.segdl-tasks")
            #expect(status.output.contains("task 1/2: ended with 1 failed"), "\(status)")
        }
    }

    @Test("A damaged record of the job names the file to remove, and nothing else is lost")
    func damagedJobRecord() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin")
            #expect(try await command.run(Self.arguments("1/2", url)).status == 0)
            try command.write("{", to: "f.bin.segdl-tasks/job.json", mode: 0o600)
            let outcome = try await command.run(Self.arguments("2/2", url))
            #expect(outcome.status == 14 && outcome.errors.contains("job.json is damaged"), "\(outcome)")
            #expect(outcome.errors.contains("stop all tasks, remove it"), "\(outcome)")
            try FileManager.default.removeItem(atPath: command.path("f.bin.segdl-tasks/job.json"))
            #expect(try await command.run(Self.arguments("2/2", url)).status == 0)
            #expect(command.holds("f.bin", Self.length))
        }
    }

    @Test("A task that is interrupted says that the same command resumes it")
    func interrupted() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin?rate=1M")
            let outcome = try await command.run(
                Self.arguments("2/3", url, ["-s", "1"]), signal: SIGINT, afterWriting: 3 << 19)
            #expect(outcome.status == 130 && outcome.errors.contains("To resume: the same command"), "\(outcome)")
            for path in ["f.bin", "f.bin.segdl-tasks/2-of-3"] {
                let resumed = try await command.run("resume", path)
                #expect(resumed.status == 14 && resumed.errors.contains("of those tasks again"), "\(resumed)")
            }
            for number in [1, 2, 3] {
                #expect(try await command.run(Self.arguments("\(number)/3", url)).status == 0)
            }
            #expect(command.holds("f.bin", Self.length))
        }
    }

    @Test("A file that changes on the server is not made of two versions")
    func changed() async throws {
        try await withOptionScene { origin, command in
            // The first task sends two requests.
            let url = origin.url("/9M/f.bin?change-after=2:7")
            #expect(try await command.run(Self.arguments("1/2", url, ["-s", "1"])).status == 0)
            let outcome = try await command.run(Self.arguments("2/2", url, ["-s", "1"]))
            #expect(outcome.status == 10 && outcome.errors.contains("its validator was ETag"), "\(outcome)")
            #expect(outcome.errors.contains("and is now ETag") && !command.exists("f.bin"), "\(outcome)")
        }
    }

    @Test("With a wrong digest the file never appears, and its bytes are kept")
    func digest() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin")
            let wrong = ["--checksum", "md5=d41d8cd98f00b204e9800998ecf8427e"]
            #expect(try await command.run(Self.arguments("1/2", url, wrong)).status == 0)
            let outcome = try await command.run(Self.arguments("2/2", url, wrong))
            #expect(outcome.status == 9 && outcome.errors.contains("f.bin.segdl-tasks/data-"), "\(outcome)")
            #expect(!command.exists("f.bin"))
            try FileManager.default.removeItem(atPath: command.path("f.bin.segdl-tasks"))
            for number in 1...2 {
                let right = try await command.run(["-q"] + Self.arguments("\(number)/2", url))
                #expect(right.status == 0 && right.errors.isEmpty, "\(right)")
            }
            #expect(command.holds("f.bin", Self.length))
        }
    }

    @Test("assemble completes a file that could not get its name, and verifies a digest")
    func assemble() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin?rate=2M")
            #expect(try await command.run(Self.arguments("1/2", url)).status == 0)
            // Another file gets the name while the last task runs.
            let last = try await command.run(
                Self.arguments("2/2", url, ["-s", "1"]), once: Segdl.hasWritten(1 << 20), "echo mine > f.bin")
            #expect(last.status == 12 && last.errors.contains("then: segdl assemble"), "\(last)")
            try FileManager.default.removeItem(atPath: command.path("f.bin"))
            let wrong = try await command.run("assemble", "--checksum", "crc32=00000000", "f.bin")
            #expect(wrong.status == 9 && !command.exists("f.bin"), "\(wrong)")
            let outcome = try await command.run("assemble", "--json", "f.bin")
            #expect(outcome.status == 0 && outcome.event("assembled")?["bytes"] as? Int == 9 << 20, "\(outcome)")
            #expect(command.holds("f.bin", Self.length))
            #expect(try Self.others(command).isEmpty)
            #expect(try await command.run("assemble", "f.bin").status == 14)
            #expect(try await command.run("assemble", "--checksum", "md5=1", "f.bin").status == 2)
        }
    }

    @Test("Damage of a completed range is found without a digest, and only that range is fetched again")
    func damagedRange() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin")
            #expect(try await command.run(Self.arguments("1/2", url)).status == 0)
            let directory = command.path("f.bin.segdl-tasks")
            let data = try #require(
                try FileManager.default.contentsOfDirectory(atPath: directory).first { $0.hasPrefix("data-") })
            try Self.damage("\(directory)/\(data)")
            let found = try await command.run(Self.arguments("2/2", url))
            #expect(found.status == 9 && found.errors.contains("the bytes of 1/2 on disk"), "\(found)")
            #expect(!command.exists("f.bin"))
            let again = try await command.run(Self.arguments("1/2", url))
            #expect(again.status == 0 && again.errors.contains("f.bin is complete"), "\(again)")
            #expect(command.holds("f.bin", Self.length))
            #expect(try Self.others(command).isEmpty)
        }
    }

    private static func damage(_ path: String) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try handle.seek(toOffset: 100_000)
        try handle.write(contentsOf: Data(repeating: 0, count: 4096))
        try handle.close()
    }

    /// Makes the file, and puts the plan back as a task leaves it that is killed between the rename and the removal of the
    /// records.
    private static func leavePlan(_ command: Segdl, _ url: String) async throws {
        #expect(try await command.run(Self.arguments("1/2", url)).status == 0)
        let (plan, kept) = (command.path("f.bin.segdl-tasks/plan"), command.path("plan"))
        try FileManager.default.copyItem(atPath: plan, toPath: kept)
        #expect(try await command.run(Self.arguments("2/2", url)).status == 0)
        try FileManager.default.createDirectory(
            atPath: command.path("f.bin.segdl-tasks"), withIntermediateDirectories: false,
            attributes: [.posixPermissions: 0o700])
        try FileManager.default.moveItem(atPath: kept, toPath: plan)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: plan)
    }

    @Test("A plan that a killed task left does not make its file the one of another request")
    func leftPlan() async throws {
        try await withOptionScene { origin, command in
            let (url, other) = (origin.url("/9M/f.bin"), origin.url("/9M/g.bin?seed=2"))
            try await Self.leavePlan(command, url)
            let wrong = ["--checksum", "md5=d41d8cd98f00b204e9800998ecf8427e"]
            let outcome = try await command.run(Self.arguments("1/2", other, wrong))
            #expect(outcome.status == 12 && outcome.errors.contains("is not the server's file"), "\(outcome)")
            #expect(command.holds("f.bin", Self.length))
            #expect(try Self.others(command).isEmpty, "the plan is removed")

            try FileManager.default.removeItem(atPath: command.path("f.bin"))
            try await Self.leavePlan(command, url)
            for number in 1...2 {
                let options = ["--if-exists", "overwrite"]
                let outcome = try await command.run(Self.arguments("\(number)/2", other, options))
                #expect(outcome.status == 0, "\(outcome)")
            }
            #expect(command.holds("f.bin", Self.length, seed: 2))
            #expect(try Self.others(command).isEmpty)
        }
    }

    @Test("A plan that a killed task left is removed by the same request and by one that skips the file")
    func leftPlanOfSame() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin")
            for (options, words) in [
                ([], "already complete"), (["--if-exists", "skip"], "f.bin exists"),
            ] as [([String], String)] {
                try await Self.leavePlan(command, url)
                let outcome = try await command.run(Self.arguments("2/2", url, options))
                #expect(outcome.status == 0 && outcome.errors.contains(words), "\(outcome)")
                #expect(command.holds("f.bin", Self.length))
                #expect(try Self.others(command).isEmpty)
                try FileManager.default.removeItem(atPath: command.path("f.bin"))
            }
        }
    }

    @Test("assemble verifies a file that has its name already")
    func assembleLeft() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin")
            try await Self.leavePlan(command, url)
            let wrong = try await command.run("assemble", "--checksum", "md5=d41d8cd98f00b204e9800998ecf8427e", "f.bin")
            #expect(wrong.status == 9 && wrong.errors.contains("the file's md5 is"), "\(wrong)")
            #expect(try await command.run("assemble", "f.bin").status == 0)
            #expect(try Self.others(command).isEmpty)

            try FileManager.default.removeItem(atPath: command.path("f.bin"))
            try await Self.leavePlan(command, url)
            try Self.damage(command.path("f.bin"))
            let damaged = try await command.run("assemble", "f.bin")
            #expect(damaged.status == 9 && damaged.errors.contains("not those that were received"), "\(damaged)")
            #expect(try await command.run(Self.arguments("1/2", url)).status == 12)
            for number in 1...2 {
                let options = ["--if-exists", "update"]
                #expect(try await command.run(Self.arguments("\(number)/2", url, options)).status == 0)
            }
            #expect(command.holds("f.bin", Self.length))
        }
    }

    @Test("Ranges that other tasks have completed do not become the file of another URL")
    func otherCountOfComplete() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin?rate=2M")
            #expect(try await command.run(Self.arguments("1/2", url)).status == 0)
            let last = try await command.run(
                Self.arguments("2/2", url, ["-s", "1"]), once: Segdl.hasWritten(1 << 20), "echo mine > f.bin")
            #expect(last.status == 12, "\(last)")
            let options = ["--if-exists", "update"]
            let other = try await command.run(
                Self.arguments("1/3", origin.url("/9M/g.bin?seed=2"), options))
            #expect(other.status == 10 && other.errors.contains("would fetch different files"), "\(other)")
            #expect(FileManager.default.contents(atPath: command.path("f.bin")) == Data("mine\n".utf8))
            let same = try await command.run(Self.arguments("1/3", url, options))
            #expect(same.status == 0, "\(same)")
            #expect(command.holds("f.bin", Self.length))
        }
    }

    @Test("Another number of tasks is refused while ranges are missing")
    func otherCount() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin")
            #expect(try await command.run(Self.arguments("1/3", url)).status == 0)
            let outcome = try await command.run(Self.arguments("2/4", url))
            #expect(outcome.status == 12 && outcome.errors.contains("being fetched by 3 tasks"), "\(outcome)")
        }
    }

    @Test("Without ranges, or without a validator and a digest, the file is not divided")
    func refused() async throws {
        try await withOptionScene { origin, command in
            for (behaviour, words) in [
                ("ranges=no", "does not support ranges"), ("etag=none&last-modified=none", "could prove"),
                ("etag=weak&last-modified=none", "could prove"),
                // The year 2200: not two seconds before the response.
                ("etag=none&last-modified=7258118400", "could not prove"),
            ] {
                let outcome = try await command.run(Self.arguments("1/2", origin.url("/9M/f.bin?\(behaviour)")))
                #expect(outcome.status == 7 && outcome.errors.contains(words), "\(outcome)")
            }
            #expect(try command.names.isEmpty)
            // A digest decides instead of a validator.
            let whole = try await command.run("--json", "-o", "whole", origin.url("/9M/f.bin"))
            let crc = try #require(whole.event("completed")?["crc32"] as? String)
            let url = origin.url("/9M/f.bin?etag=none&last-modified=none")
            for number in 1...2 {
                let arguments = Self.arguments("\(number)/2", url, ["--checksum", "crc32=\(crc)"])
                #expect(try await command.run(arguments).status == 0)
            }
            #expect(command.holds("f.bin", Self.length))
        }
    }

    @Test("Slurm's variables number the tasks; empty and short files need only the first")
    func automatic() async throws {
        try await withOptionScene { origin, command in
            for (length, url) in [(100, origin.url("/100/f.bin")), (0, origin.url("/0/f.bin"))] as [(Int64, String)] {
                for task in 0...2 {
                    let environment = [
                        "SLURM_ARRAY_TASK_ID": "\(task)", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_COUNT": "3",
                    ]
                    let outcome = try await command.run(Self.arguments("auto", url), environment: environment)
                    #expect(outcome.status == 0, "\(outcome)")
                    #expect(command.holds("f.bin", length))
                }
                #expect(try Self.others(command).isEmpty)
                try FileManager.default.removeItem(atPath: command.path("f.bin"))
            }
        }
    }

    @Test("A file that exists is compared, kept, or replaced once the new one is complete")
    func existing() async throws {
        try await withOptionScene { origin, command in
            let url = origin.url("/9M/f.bin")
            try command.write("mine", to: "f.bin")
            #expect(try await command.run(Self.arguments("1/2", url)).status == 12)
            #expect(try await command.run(Self.arguments("1/2", url, ["--if-exists", "skip"])).status == 0)
            for number in 1...2 {
                #expect(FileManager.default.contents(atPath: command.path("f.bin")) == Data("mine".utf8))
                let options = ["--if-exists", "update"]
                #expect(try await command.run(Self.arguments("\(number)/2", url, options)).status == 0)
            }
            #expect(command.holds("f.bin", Self.length))
            let update = try await command.run(Self.arguments("1/2", url, ["--if-exists", "update"]))
            #expect(update.status == 0 && update.errors.contains("already complete"), "\(update)")
        }
    }

    @Test(
        "What does not divide one file is refused",
        arguments: [
            ["--one-file", "-o", "f"], ["--one-file", "--shard", "1/2"], ["--one-file", "--shard", "3/2", "-o", "f"],
            ["--one-file", "--shard", "1/2", "-o", "f", "--range", "1-2"],
            ["--one-file", "--shard", "1/2", "-o", "f", "--if-exists", "rename"],
            ["--one-file", "--shard", "1/2", "-o", "-"], ["--one-file", "--shard", "1/2", "-o", "f", "--dry-run"],
            ["--one-file", "--shard", "1/2", "-o", "f", "--job", "d"],
            ["--shard", "1/2", "-o", "f", "--steal-after", "10"],
            ["--one-file", "--shard", "1/2", "-o", "f", "--steal-after", "9.9"],
        ])
    func usage(arguments: [String]) async throws {
        try await withCommand { command in
            let outcome = try await command.run(arguments + ["http://localhost:1/"])
            #expect(outcome.status == 2, "\(outcome)")
            #expect(try command.names.isEmpty)
        }
    }
}
