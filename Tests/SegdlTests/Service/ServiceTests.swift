import Foundation
import Origin
import Synchronization
import TestSupport
import Testing

/// The background service and its commands, as processes.
@Suite struct ServiceTests {
    /// Runs `body` with the service and an origin.
    private static func run(
        _ options: [String] = [], stopping: Bool = true,
        _ body: @escaping @Sendable (Service, Origin) async throws -> Void
    ) async throws -> Segdl.Outcome {
        try await withCommand { command in
            try await withOrigin { origin in
                try await Service.run(command, options, stopping: stopping) { try await body($0, origin) }
            }
        }
    }

    @Test("A file that is added arrives, wait has its exit status, and the history has a row")
    func completes() async throws {
        let ending = try await Self.run { service, origin in
            let id = try #require(try await service.add("-d", "files", origin.url("/1M/a.bin")).first)
            let waited = try await service.run("wait", id)
            #expect(waited.status == 0, "\(waited.errors)")
            let path = service.command.path("files/a.bin")
            #expect(OriginContent(seed: 1).firstMismatch(inFileAt: path, length: 1 << 20) == nil)
            #expect(try await service.list().isEmpty)
            let history = try await service.run("history", "--json").events
            #expect(history.map { $0["id"] as? String } == [id])
            #expect(history.first?["state"] as? String == "completed")
            // Of an ended download, too.
            #expect(try await service.run("attach", id).status == 0)
        }
        #expect(ending.status == 0, "\(ending.errors)")
    }

    @Test("wait and attach have the exit status of the failure, and retry runs the download again")
    func fails() async throws {
        _ = try await Self.run { service, origin in
            let url = origin.plainURL("/1M/a.bin?fail=404:all")
            let id = try #require(try await service.add(url).first)
            for verb in ["wait", "attach"] {
                let outcome = try await service.run(verb, id)
                #expect(outcome.status == 8, "\(verb): \(outcome.errors)")
            }
            let list = try await service.list()
            #expect((list.first?["error"] as? [String: Any])?["code"] as? String == "server")
            _ = origin.plainURL("/1M/a.bin")
            #expect(try await service.run("retry", id).status == 0)
            #expect(try await service.run("wait", id).status == 0)
        }
    }

    @Test("pause, resume, move, priority, cancel and remove change the queue")
    func commands() async throws {
        _ = try await Self.run { service, origin in
            let urls = (1...3).map { origin.url("/1M/\($0).bin") }
            let ids = try await service.add("--paused", "-d", "files", urls[0], urls[1], urls[2])
            #expect(ids.count == 3)
            func order() async throws -> [String?] { try await service.list().map { $0["id"] as? String } }
            #expect(try await service.run("move", ids[2], "first").status == 0)
            #expect(try await order() == [ids[2], ids[0], ids[1]])
            let first = try await service.add("--paused", "--first", origin.url("/1M/4.bin"))
            #expect(try await order() == [first[0], ids[2], ids[0], ids[1]])
            #expect(try await service.run("cancel", first[0]).status == 0)
            #expect(try await service.run("priority", String(ids[0].prefix(8)), "0.9").status == 0)
            #expect(try await service.list()[1]["priority"] as? Double == 0.9)
            #expect(try await service.run("priority", ids[0], "2").status == 2)
            #expect(try await service.run("resume", ids[0]).status == 0)
            #expect(try await service.run("wait", ids[0]).status == 0)
            #expect(try await service.run("cancel", ids[1]).status == 0)
            #expect(try await service.run("remove", ids[2], ids[1], ids[0], first[0]).status == 0)
            #expect(try await service.run("history").output.isEmpty)
            // The file of the completed download stays.
            #expect(service.command.exists("files/1.bin"))
            let outcome = try await service.run("pause", ids[0])
            #expect(outcome.status == 2 && outcome.errors.contains("there is no download"), "\(outcome.errors)")
        }
    }

    @Test("toggle pauses a download that runs or waits, and resumes a paused one")
    func toggle() async throws {
        _ = try await Self.run { service, origin in
            let paused = try #require(try await service.add("--paused", origin.url("/1M/a.bin")).first)
            let stuck = origin.plainURL("/64M/b.bin?stall-after=4M:all")
            let running = try #require(try await service.add("-s", "2", stuck).first)
            #expect(try await service.run("toggle", paused, running).status == 0)
            #expect(try await service.run("wait", paused).status == 0)
            #expect(try await service.list().map { $0["state"] as? String } == ["paused"])
            #expect(try await service.run("toggle", paused).status == 2)
        }
    }

    @Test("A killed service continues its downloads when the next command starts it, and an added file is not lost")
    func killed() async throws {
        try await withCommand { command in
            try await withOrigin { origin in
                let url = origin.plainURL("/64M/a.bin?stall-after=4M:all")
                let ending = try await Service.run(command, stopping: false) { service in
                    let ids = try await service.add("-d", "files", "-s", "2", url)
                    while try await service.list().first?["bytes_done"] as? Int ?? 0 < 4 << 20 {}
                    let paused = try await service.add("--paused", origin.url("/1M/b.bin"))
                    #expect(ids.count == 1 && paused.count == 1)
                    kill(service.process, SIGKILL)
                }
                #expect(ending.status == -SIGKILL)
                _ = origin.plainURL("/64M/a.bin")
                let again = try await Service.run(command) { service in
                    let waited = try await service.run("wait", "a.bin")
                    #expect(waited.status == 0, "\(waited.errors)")
                    #expect(try await service.list().map { $0["state"] as? String } == ["paused"])
                }
                #expect(again.status == 0)
                let path = command.path("files/a.bin")
                #expect(OriginContent(seed: 1).firstMismatch(inFileAt: path, length: 64 << 20) == nil)
                #expect(again.errors.contains("fetched)"), "nothing was kept: \(again.errors)")
            }
        }
    }

    @Test("SIGTERM pauses the downloads, and the service exits with status 0")
    func terminated() async throws {
        let ending = try await Self.run(stopping: false) { service, origin in
            _ = try await service.add("-s", "2", origin.plainURL("/64M/a.bin?stall-after=4M:all"))
            while try await service.list().first?["bytes_done"] as? Int ?? 0 < 1 << 20 {}
            kill(service.process, SIGTERM)
        }
        #expect(ending.status == 0 && ending.errors.contains("paused: "), "\(ending.errors)")
    }

    @Test("A second service is refused, and the socket of a killed one is taken over")
    func second() async throws {
        try await withCommand { command in
            let ending = try await Service.run(command, stopping: false) { service in
                let second = try await service.run("daemon")
                #expect(second.status == 15 && second.errors.contains("already runs, as process \(service.process)"))
                kill(service.process, SIGKILL)
            }
            #expect(ending.status == -SIGKILL && command.exists("run/segdl/socket"))
            let next = try await Service.run(command) { service in
                let list = try await service.list()
                #expect(list.isEmpty)
            }
            #expect(next.status == 0 && !command.exists("run/segdl/socket"), "\(next.errors)")
        }
    }

    @Test("A socket that was put in the place of the service's own is not deleted")
    func replaced() async throws {
        try await withCommand { command in
            let ending = try await Service.run(command, stopping: false) { service in
                unlink(service.socket)
                try Data("other".utf8).write(to: URL(fileURLWithPath: service.socket))
                kill(service.process, SIGTERM)
            }
            #expect(ending.status == 0 && command.exists("run/segdl/socket"))
            let next = try await command.run(
                ["daemon"],
                environment: ["XDG_STATE_HOME": command.path("state"), "XDG_RUNTIME_DIR": command.path("run")])
            #expect(next.status == 15 && next.errors.contains("is not a socket of this user"), "\(next.errors)")
        }
    }

    @Test("A runtime directory that other users can open is refused")
    func directory() async throws {
        try await withCommand { command in
            try FileManager.default.createDirectory(
                atPath: command.path("run/segdl"), withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o755])
            let outcome = try await command.run(
                ["daemon"],
                environment: ["XDG_STATE_HOME": command.path("state"), "XDG_RUNTIME_DIR": command.path("run")])
            #expect(outcome.status == 15 && outcome.errors.contains("is open to other users"), "\(outcome.errors)")
        }
    }

    @Test("A command starts the service, --no-autostart does not, and --idle-exit ends it")
    func autostart() async throws {
        try await withCommand { command in
            let environment = [
                "HOME": command.path("home"), "XDG_STATE_HOME": command.path("state"),
                "XDG_RUNTIME_DIR": command.path("run"),
            ]
            for name in ["home", "run"] {
                try FileManager.default.createDirectory(atPath: command.path(name), withIntermediateDirectories: true)
            }
            let none = try await command.run(["list", "--no-autostart"], environment: environment)
            #expect(none.status == 15 && none.errors.contains("does not run"), "\(none.errors)")
            let list = try await command.run(["list"], environment: environment)
            #expect(list.status == 0 && list.output.contains("no downloads"), "\(list.errors)")
            #expect(try await command.run(["stop"], environment: environment).status == 0)
            let idle = try await command.run(["daemon", "--idle-exit", "50ms"], environment: environment)
            #expect(idle.status == 0, "\(idle.errors)")
            // What cannot start says why.
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o755], ofItemAtPath: command.path("state/segdl"))
            let refused = try await command.run(["list"], environment: environment)
            #expect(refused.status == 15 && refused.errors.contains("is open to other users"), "\(refused.errors)")
        }
    }

    @Test("A command in the foreground names the service that has the file, and resume hands over to it")
    func owner() async throws {
        _ = try await Self.run { service, origin in
            let url = origin.plainURL("/64M/a.bin?stall-after=4M:all")
            let id = try #require(try await service.add("-s", "2", url).first)
            while try await service.list().first?["bytes_done"] as? Int ?? 0 < 1 << 20 {}
            let foreground = try await service.run("-o", "a.bin", url)
            #expect(foreground.status == 12 && foreground.errors.contains("segdl attach \(id)"), "\(foreground.errors)")
            #expect(try await service.run("pause", "a.bin").status == 0)
            _ = origin.plainURL("/64M/a.bin")
            let resumed = try await service.run("resume", "a.bin")
            #expect(resumed.status == 0 && resumed.errors.contains("segdl attach \(id)"), "\(resumed.errors)")
            #expect(try await service.run("attach", id).status == 0)
        }
    }

    @Test("A word means the same download to resume as to pause: a name, a path, a URL or the beginning of an ID")
    func words() async throws {
        _ = try await Self.run { service, origin in
            // It has not begun, so there is no manifest. Each time it is resumed, it gets a little of many bytes.
            let url = origin.plainURL("/512M/a.bin?stall-after=1M:all")
            let id = try #require(try await service.add("-s", "2", "--paused", "-d", "other", url).first)
            func state() async throws -> String? { try await service.list().first?["state"] as? String }
            for word in ["a.bin", "other/a.bin", service.command.path("other/a.bin"), url, String(id.prefix(6)), id] {
                let dry = try await service.run("resume", "--dry-run", word)
                #expect(dry.status == 0 && dry.errors.contains("would continue"), "\(word): \(dry)")
                #expect(try await state() == "paused")
                let resumed = try await service.run("resume", word)
                #expect(resumed.status == 0 && resumed.errors.contains("segdl attach \(id)"), "\(word): \(resumed)")
                #expect(try await state() != "paused", "\(word)")
                let paused = try await service.run("pause", word)
                #expect(paused.status == 0, "\(word): \(paused)")
                #expect(try await state() == "paused", "\(word)")
            }
            #expect(try await service.run("resume", "b.bin").status == 14)
            #expect(try await service.run("resume", origin.url("/1K/b.bin")).status == 2)
            // A directory means its files only.
            #expect(try await service.run("resume", "-d", "elsewhere", "a.bin").status == 14)
            #expect(try await state() == "paused")
        }
    }

    @Test("add stores the valid entries of a list, and reports the others")
    func malformedEntry() async throws {
        _ = try await Self.run { service, origin in
            try service.command.write("\(origin.url("/1K/a.bin"))\nftp://a/b\n", to: "list")
            let outcome = try await service.run("add", "--paused", "-i", "list")
            #expect(outcome.status == 16 && outcome.errors.contains("list:2: "), "\(outcome)")
            #expect(try await service.list().count == 1)
        }
    }

    @Test("Of two downloads with one name, a word means that of the directory, and otherwise neither")
    func sameName() async throws {
        _ = try await Self.run { service, origin in
            let url = origin.plainURL("/512M/a.bin?stall-after=1M:all")
            let first = try #require(try await service.add("-s", "2", "--paused", "-d", "one", url).first)
            _ = try await service.add("-s", "2", "--paused", "-d", "two", url)
            for command in ["resume", "toggle", "show"] {
                let unclear = try await service.run(command, "a.bin")
                #expect(unclear.status == 2 && unclear.errors.contains("means 2 downloads"), "\(command): \(unclear)")
            }
            let here = try await service.add("-s", "2", "--paused", url)
            for command in ["resume", "pause"] {
                #expect(try await service.run(command, "a.bin").status == 0)
                let part = try await service.run(command, "a.bin.segdl-part")
                #expect(part.status == (command == "resume" ? 0 : 2), "\(part)")
            }
            let shown = try await service.run("show", "--json", "a.bin")
            #expect(shown.output.contains(try #require(here.first)), "\(shown)")
            #expect(try await service.run("resume", "one/a.bin").errors.contains(first))
        }
    }

    @Test("resume --all resumes what pause --all has paused, from any directory, and with -d only files there")
    func allWords() async throws {
        _ = try await Self.run { service, origin in
            let url = origin.plainURL("/64M/a.bin?stall-after=4M:all")
            _ = try await service.add("-d", "other", "-s", "2", url)
            _ = try await service.add("--paused", "-d", "other", origin.plainURL("/64M/b.bin?stall-after=4M:all"))
            #expect(try await service.run("pause", "--all").status == 0)
            let none = try await service.run("resume", "--all", "-d", ".")
            #expect(none.status == 0 && none.errors.contains("nothing to resume in ."), "\(none)")
            #expect(try await service.list().allSatisfy { $0["state"] as? String == "paused" })
            let all = try await service.run("resume", "--all")
            #expect(all.status == 0 && all.errors.count { $0 == "\n" } == 2, "\(all)")
            #expect(try await service.list().allSatisfy { $0["state"] as? String != "paused" })
            #expect(try await service.run("cancel", "--all").status == 0)
        }
    }

    @Test("attach ends when a download that has not begun is cancelled or paused", arguments: ["cancel", "pause"])
    func attachWaiting(word: String) async throws {
        _ = try await Self.run(["-j", "1"]) { service, origin in
            let first = try await service.add("-s", "2", origin.plainURL("/64M/a.bin?stall-after=4M:all"))
            let id = try #require(try await service.add(origin.url("/1M/b.bin")).first)
            async let attached = service.run("attach", "--json", id)
            // Once attach has read its state, or before: both end.
            #expect(try await service.run(word, id).status == 0)
            let end = try await attached
            #expect(end.status == 130, "\(end)")
            let name = word == "cancel" ? "cancelled" : "paused"
            #expect(end.events.contains { $0["event"] as? String == name }, "\(end)")
            #expect(try await service.run(["cancel"] + first).status == 0)
        }
    }

    @Test("A download that cannot begin fails like others: with its exit status, and its hook")
    func cannotBegin() async throws {
        try await withCommand { command in
            try await withOrigin { origin in
                let options = ["--proto", "=https", "--on-error", "cat >\(command.path("hook"))"]
                _ = try await Service.run(command, options) { service in
                    let id = try #require(try await service.add(origin.url("/1M/a.bin")).first)
                    #expect(try await service.run("attach", id).status == 11)
                    while !command.exists("hook") {
                        // Not a delay for correctness: it leaves the processor to the hook.
                        try await Task.sleep(for: .milliseconds(5))
                    }
                }
            }
        }
    }

    @Test("Limits that were set apply before a restarted service begins a download")
    func restoredLimits() async throws {
        try await withCommand { command in
            try await withOrigin { origin in
                let ids = Mutex<[String]>([])
                _ = try await Service.run(command) { service in
                    _ = try await service.run("limits", "max-concurrent-downloads=1")
                    let added = try await service.add(
                        "--paused", "-s", "2", origin.plainURL("/64M/a.bin?stall-after=4M:all"),
                        origin.plainURL("/64M/b.bin?stall-after=4M:all"))
                    ids.withLock { $0 = added }
                    _ = try await service.run("limits", "between=\(Self.otherHours)")
                    #expect(try await service.run(["resume"] + added).status == 0)
                }
                for _ in 0..<3 {
                    _ = try await Service.run(command) { service in
                        let states = try await service.list().map { $0["state"] as? String }
                        #expect(states == ["waiting", "waiting"])
                    }
                }
                #expect(origin.log.snapshot().requests.isEmpty)
                _ = try await Service.run(command) { service in
                    _ = try await service.run("limits", "between=always")
                    let cancelled = try await service.run(["cancel"] + ids.withLock { $0 })
                    #expect(cancelled.status == 0, "\(cancelled.errors)")
                }
            }
        }
    }

    /// Two hours from now for an hour, as a limit.
    private static var otherHours: String {
        let formatter = DateFormatter()
        formatter.dateFormat = "HH:mm"
        return [120.0, 180].map { formatter.string(from: Date(timeIntervalSinceNow: $0 * 60)) }.joined(separator: "-")
    }

    @Test("Limits are applied while the service runs, are kept, and an invalid one changes nothing")
    func limits() async throws {
        try await withCommand { command in
            _ = try await Service.run(command) { service in
                let set = try await service.run("limits", "limit-rate=2M", "between=01:00-07:00")
                #expect(set.output == "between=01:00-07:00\nlimit-rate=2M\n", "\(set.errors)")
                let invalid = try await service.run("limits", "limit-rate=5M", "between=25:00-26:00")
                #expect(invalid.status == 2 && invalid.errors.contains("between must be HH:MM-HH:MM"))
            }
            _ = try await Service.run(command) { service in
                let kept = try await service.run("limits")
                #expect(kept.output == "between=01:00-07:00\nlimit-rate=2M\n")
                let changed = try await service.run("limits", "between=default")
                #expect(changed.output == "limit-rate=2M\n")
            }
        }
    }

    @Test("Outside of the allowed hours nothing starts, and a change of them starts it")
    func hours() async throws {
        _ = try await Self.run { service, origin in
            _ = try await service.run("limits", "between=\(Self.otherHours)")
            let id = try #require(try await service.add(origin.url("/1M/a.bin")).first)
            #expect(try await service.list().first?["state"] as? String == "waiting")
            let answer = try await service.answer(to: "GET /v1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            #expect(answer.contains(#""held":"hours""#), "\(answer)")
            #expect(try await service.run("limits", "between=always").status == 0)
            #expect(try await service.run("wait", id).status == 0)
        }
    }

    /// A time zone that is always this many hours ahead of UTC (tzfile(5)).
    private static func zone(hours: UInt8) -> Data {
        let counts = [0, 0, 0, 0, 1, 4].flatMap { [0, 0, 0, $0] as [UInt8] }
        let seconds = withUnsafeBytes(of: (Int32(hours) * 3600).bigEndian) { Array($0) }
        return Data(Array("TZif".utf8) + [UInt8](repeating: 0, count: 16) + counts + seconds + [0, 0] + "ABC\0".utf8)
    }

    @Test(
        "Hours are those of the time zone that the machine has now, not of the one at the service's start",
        .enabled(if: getuid() == 0, "needs root, for a file system of its own"))
    func timeZone() async throws {
        try await withOrigin { origin in
            try await withCommand { command in
                let zone = URL(fileURLWithPath: command.path("zone"))
                try Self.zone(hours: 0).write(to: zone)
                // The C library notices a change of the file by its time in seconds.
                let past = Date(timeIntervalSince1970: 1_000_000_000)
                try FileManager.default.setAttributes([.modificationDate: past], ofItemAtPath: zone.path)
                let shell = #"""
                    mount --bind "$PWD/zone" "$(realpath /etc/localtime)" && exec env -u TZ "$0" "$@"
                    """#
                _ = try await Service.run(
                    command, shell: #"exec unshare -m bash -c '\#(shell)' "$0" "$@""#
                ) { service in
                    let formatter = DateFormatter()
                    formatter.timeZone = TimeZone(secondsFromGMT: 8 * 3600)
                    formatter.dateFormat = "HH:mm"
                    let hours = [-60.0, 60].map { formatter.string(from: Date(timeIntervalSinceNow: $0 * 60)) }
                    _ = try await service.run("limits", "between=\(hours.joined(separator: "-"))")
                    let id = try #require(try await service.add(origin.url("/1M/a.bin")).first)
                    #expect(try await service.list().first?["state"] as? String == "waiting")
                    // In place, because the mount has the file and not its name.
                    let file = try FileHandle(forWritingTo: zone)
                    try file.write(contentsOf: Self.zone(hours: 8))
                    try file.close()
                    #expect(try await service.run("wait", id).status == 0)
                }
            }
        }
    }

    @Test("--background adds, the list can be watched, and one download can be shown")
    func background() async throws {
        _ = try await Self.run { service, origin in
            let added = try await service.run("--background", "--json", "-d", "files", origin.url("/1M/a.bin"))
            let id = try #require(added.events.first?["id"] as? String, "\(added.errors)")
            let watched = try await service.run("list", "--watch")
            #expect(watched.status == 0, "\(watched.errors)")
            #expect(try await service.run("show", id).output.contains("completed"))
            _ = origin.plainURL("/1M/b.bin?fail=404:all")
            let failed = try #require(try await service.add(origin.plainURL("/1M/b.bin?fail=404:all")).first)
            _ = try await service.run("wait", "--all")
            let list = try await service.run("list", "--state", "failed")
            #expect(list.output.contains(failed), "\(list.errors)")
            #expect(try await service.run("list", "--state", "other").status == 2)
            #expect(try await service.run("show", failed, "--json").events.first?["state"] as? String == "failed")
            #expect(try await service.run("history", "--limit", "1", "--json").events.count == 1)
        }
    }

    @Test("cancel --delete deletes the partial file, cancel leaves it for the foreground")
    func cancel() async throws {
        _ = try await Self.run { service, origin in
            for (name, options) in [("a.bin", ["--delete"]), ("b.bin", [])] {
                let url = origin.plainURL("/64M/\(name)?stall-after=4M:all")
                let id = try #require(try await service.add("-s", "2", url).first)
                while try await service.list().first?["bytes_done"] as? Int ?? 0 < 1 << 20 {}
                let cancelled = try await service.run(["cancel"] + options + [id])
                #expect(cancelled.status == 0, "\(cancelled.errors)")
                #expect(try await service.run("wait", id).status == 130)
                #expect(service.command.exists("\(name).segdl-part") == options.isEmpty)
            }
        }
    }

    @Test("--detach returns once the service answers, and --install writes systemd units")
    func detached() async throws {
        try await withCommand { command in
            let environment = [
                "HOME": command.path("home"), "XDG_RUNTIME_DIR": command.path("run"),
                "XDG_CONFIG_HOME": command.path("config"),
            ]
            for name in ["home", "run"] {
                try FileManager.default.createDirectory(atPath: command.path(name), withIntermediateDirectories: true)
            }
            let started = try await command.run(["daemon", "--detach"], environment: environment)
            #expect(started.status == 0 && started.errors.contains("runs as process"), "\(started.errors)")
            #expect(try await command.run(["list", "--no-autostart"], environment: environment).status == 0)
            let second = try await command.run(["daemon", "--detach"], environment: environment)
            #expect(second.status == 15 && second.errors.contains("already runs"), "\(second.errors)")
            #expect(try await command.run(["stop"], environment: environment).status == 0)
            let installed = try await command.run(["daemon", "--install", "-j", "2"], environment: environment)
            #expect(installed.status == 0, "\(installed.errors)")
            let unit = try String(contentsOfFile: command.path("config/systemd/user/segdl.service"), encoding: .utf8)
            #expect(unit.contains("\"daemon\" \"-j\" \"2\"\n") && unit.contains("Type=notify"), "\(unit)")
            #expect(command.exists("config/systemd/user/segdl.socket"))
            let refused = try await command.run(
                ["daemon", "--install", "--header", "X-Key: secret-value"], environment: environment)
            #expect(refused.status == 15 && !refused.errors.contains("secret-value"), "\(refused.errors)")
        }
    }

    @Test("Options of the whole run are refused for a file of the service")
    func runOptions() async throws {
        _ = try await Self.run { service, origin in
            for option in [["--proxy", "http://x:1"], ["-x8"], ["--limit-rate=1M"], ["--on-complete", "true"]] {
                let outcome = try await service.run(["add"] + option + [origin.url("/1M/a.bin")])
                #expect(outcome.status == 2 && outcome.errors.contains("applies to the whole background service"))
            }
            #expect(try await service.list().isEmpty)
        }
    }
}
