import Foundation
import Origin
import Testing

/// `--on-complete`, `--on-error` and `--notify`, with the real command.
@Suite(.timeLimit(.minutes(30))) struct HookTests {
    /// Runs the command on resources of an origin.
    private static func run(
        _ command: Segdl, _ arguments: [String], _ resources: String..., environment: [String: String] = [:]
    ) async throws -> Segdl.Outcome {
        try await withOrigin { origin in
            try await command.run(
                ["--progress", "none"] + arguments + resources.map { origin.url($0) }, environment: environment)
        }
    }

    private static func text(_ name: String, in command: Segdl) -> String {
        String(decoding: FileManager.default.contents(atPath: command.path(name)) ?? Data(), as: UTF8.self)
    }

    @Test("A command is run for every complete file, with the event on its standard input and the facts in variables")
    func onComplete() async throws {
        try await withCommand { command in
            let outcome = try await Self.run(
                command,
                ["-q", "--on-complete", #"cat >> events; echo "$SEGDL_PATH $SEGDL_BYTES $SEGDL_CRC32" >> facts"#],
                "/1k/a.bin?seed=1", "/2k/b.bin?seed=2", "/3k/c.bin?fail=404:all")
            #expect(outcome.status == 16)
            let events = Self.text("events", in: command).split(separator: "\n").compactMap {
                (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
            }
            #expect(events.compactMap { $0["path"] as? String }.sorted() == ["a.bin", "b.bin"])
            #expect(events.allSatisfy { $0["event"] as? String == "completed" })
            #expect(events.allSatisfy { ($0["url"] as? String)?.hasPrefix("http://127.0.0.1") == true })
            let facts = Self.text("facts", in: command).split(separator: "\n").sorted()
            #expect(facts.map { $0.prefix(11) } == ["a.bin 1024 ", "b.bin 2048 "])
        }
    }

    @Test("A command is run for every file that failed, and told why")
    func onError() async throws {
        try await withCommand { command in
            let outcome = try await Self.run(
                command, ["--on-error", #"echo "$SEGDL_CODE $SEGDL_EXIT $SEGDL_STATUS $SEGDL_PATH" > facts"#],
                "/1k/a.bin?fail=404:all")
            #expect(outcome.status == 8)
            #expect(Self.text("facts", in: command) == "server 8 404 a.bin\n")
        }
    }

    @Test("Any exit of a hook leaves the exit status to the download, and a failed hook is reported")
    func endings() async throws {
        let endings = [("exit 3", "status 3"), ("kill -9 $$", "signal 9"), ("true", ""), ("exec <&-", "")]
        for (hook, said) in endings {
            try await withCommand { command in
                let outcome = try await Self.run(command, ["-q", "--on-complete", hook], "/1k/a.bin")
                #expect(outcome.status == 0, "\(outcome)")
                let isSaid = said.isEmpty ? outcome.errors.isEmpty : outcome.errors.contains(said)
                #expect(isSaid, "\(hook): \(outcome)")
            }
        }
    }

    @Test(
        "A hook's output goes to standard error, never among the events, and segdl does not wait for its background processes"
    )
    func output() async throws {
        try await withCommand { command in
            let outcome = try await Self.run(
                command,
                ["--json", "--on-complete", "echo said; ls /proc/self/fd | wc -l; sleep 1000 & echo $! > child"],
                "/1k/a.bin")
            #expect(outcome.status == 0)
            #expect(outcome.errors.contains("said\n"))
            // Standard input, output and error, and the listed directory: no descriptor of segdl.
            #expect(outcome.errors.split(separator: "\n").last?.trimmingCharacters(in: .whitespaces) == "4")
            let isAllJSON = outcome.output.split(separator: "\n").allSatisfy { $0.hasPrefix("{") }
            #expect(isAllJSON)
            let child = try #require(Int32(Self.text("child", in: command).trimmingCharacters(in: .newlines)))
            #expect(kill(child, SIGKILL) == 0)
        }
    }

    @Test("A hook that does not end delays no other")
    func hanging() async throws {
        try await withCommand { command in
            // The first hook ends only once the second one has run.
            let hook =
                "case $SEGDL_PATH in a.bin) until [ -e second ]; do sleep 0.01; done;; *) > second;; esac; "
                + #"echo "$SEGDL_PATH" >> ends"#
            let outcome = try await Self.run(
                command, ["-q", "-j", "1", "--on-complete", hook], "/1k/a.bin", "/1k/b.bin")
            #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome)")
            #expect(Self.text("ends", in: command).split(separator: "\n").sorted() == ["a.bin", "b.bin"])
        }
    }

    @Test("A hook's exit status is reported, and it gets every signal, whatever segdl was started with")
    func inheritedDispositions() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let outcome = try await command.run(
                    ["-q", "--on-complete", "grep SigIgn /proc/self/status; exit 3", origin.url("/1k/a.bin")],
                    shell: #"exec env --ignore-signal=CHLD,ALRM,USR1,TSTP "$0" "$@""#)
                #expect(outcome.status == 0, "\(outcome)")
                #expect(outcome.errors.contains("--on-complete ended with status 3"), "\(outcome)")
                let words = outcome.errors.split(whereSeparator: \.isWhitespace)
                let ignored = words.drop { $0 != "SigIgn:" }.dropFirst().first.flatMap { UInt64($0, radix: 16) }
                // 32 and 33 are the C library's own.
                #expect(ignored.map { $0 & 0x7FFF_FFFF } == 0, "\(outcome)")
            }
        }
    }

    @Test("An interrupted run starts no more hooks and ends the running ones")
    func interrupted() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let names = (0..<6).map { origin.url("/1k/\($0).bin") }
                let outcome = try await command.run(
                    ["-q", "-j", "1", "--on-complete", "sleep 1000 & echo $! >> runs; wait"] + names
                        + [origin.url("/1M/slow.bin?rate=1k")]
                ) { process in
                    while Self.runs(in: command).count < 4 || origin.log.snapshot().requests.count < 7 {
                        guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }
                    }
                    kill(process, SIGTERM)
                }
                #expect(outcome.status == 143)
                let runs = Self.runs(in: command)
                #expect(runs.count == 4 && outcome.errors.contains("2 hooks were not run"), "\(outcome)")
                for run in runs { await Self.waitForEnd(of: run) }
            }
        }
    }

    @Test("A signal while only hooks are left ends them, and the files stay complete")
    func interruptedAtTheEnd() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let names = (0..<6).map { origin.url("/1k/\($0).bin") }
                let outcome = try await command.run(
                    ["--json", "--on-complete", "sleep 1000 & echo $! >> runs; wait"] + names
                ) { process in
                    let output = { Self.output(in: command) }
                    while Self.runs(in: command).count < 4 || !output().contains("all_completed") {
                        guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }
                    }
                    kill(process, SIGTERM)
                }
                #expect(outcome.status == 0, "\(outcome)")
                #expect(outcome.errors.contains("2 hooks were not run"), "\(outcome)")
                let runs = Self.runs(in: command)
                #expect(runs.count == 4)
                for run in runs { await Self.waitForEnd(of: run) }
            }
        }
    }

    /// The processes that hooks have noted.
    private static func runs(in command: Segdl) -> [Int32] {
        Self.text("runs", in: command).split(separator: "\n").compactMap { Int32($0) }
    }

    /// Returns once a process has ended, even if it is not reaped: a hook's children end with it.
    private static func waitForEnd(of process: Int32) async {
        while let text = FileManager.default.contents(atPath: "/proc/\(process)/stat").map({
            String(decoding: $0, as: UTF8.self)
        }),
            let state = text.split(separator: ")").last?.split(separator: " ").first, state != "Z"
        {
            guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }
        }
    }

    /// The command's standard output so far.
    private static func output(in command: Segdl) -> String {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: command.directory)) ?? []
        return names.filter { $0.hasSuffix(".out") }.map { Self.text($0, in: command) }.joined()
    }

    @Test("A variable whose value the event lacks is unset, even if the command inherited it")
    func inherited() async throws {
        try await withCommand { command in
            _ = try await Self.run(
                command, ["-q", "--on-complete", "echo \"$SEGDL_EVENT$SEGDL_CODE$SEGDL_MESSAGE\" > facts"], "/1k/a.bin",
                environment: ["SEGDL_CODE": "server", "SEGDL_MESSAGE": "old", "SEGDL_EVENT": "failed"])
            #expect(Self.text("facts", in: command) == "completed\n")
        }
    }

    @Test("A notification at the end reports the result, and its absence is no failure")
    func notify() async throws {
        try await withCommand { command in
            let tool = command.path("notify-send")
            try #"#!/bin/sh\nprintf '%s|' "$@" >> \#(command.path("notes"))\n"#
                .replacingOccurrences(of: "\\n", with: "\n").write(toFile: tool, atomically: true, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: tool)
            let path = ["PATH": command.directory + ":/usr/bin:/bin"]
            _ = try await Self.run(command, ["--notify"], "/1k/a.bin", environment: path)
            _ = try await Self.run(command, ["--notify"], "/1k/b.bin", "/1k/c.bin?fail=404:all", environment: path)
            #expect(
                Self.text("notes", in: command)
                    == "--app-name=segdl|--|Download complete|a.bin: 1.00 KiB|"
                    + "--app-name=segdl|--|1 of 2 downloads failed|1.00 KiB complete|")
            let without = try await Self.run(command, ["--notify"], "/1k/d.bin", environment: ["PATH": "/nowhere"])
            #expect(without.status == 0 && without.errors.contains("--notify could not be run"), "\(without)")
        }
    }

    @Test("An empty hook is a usage error", arguments: ["", "  "])
    func empty(hook: String) async throws {
        try await withCommand { command in
            let outcome = try await command.run("--on-complete", hook, "http://127.0.0.1/x")
            #expect(outcome.status == 2 && outcome.errors.contains("--on-complete is empty"))
        }
    }
}
