import Foundation
import Origin
import Synchronization
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// The environment of one case: two origins, a directory, and the command in it.
struct FaultScene: Sendable {
    let fault: FaultCase
    /// Runs in a subdirectory of a directory with only the case's own files.
    let command: Segdl
    let origin: Origin
    let other: Origin
    let silence: SilentListener

    /// Sets up the environment, runs the case and checks the files that are left.
    static func play(_ fault: FaultCase) async throws {
        try await withCommand { outer in
            try FileManager.default.createDirectory(atPath: outer.path("work"), withIntermediateDirectories: false)
            try Data(Origin.certificateAuthorityPEM.utf8).write(to: URL(fileURLWithPath: outer.path("ca.pem")))
            let silence = try SilentListener()
            defer { silence.close() }
            try await withOrigin(try .init(fault.origin)) { origin in
                try await withOrigin(try .init(fault.other)) { other in
                    let scene = FaultScene(
                        fault: fault, command: Segdl(directory: outer.path("work")), origin: origin, other: other,
                        silence: silence)
                    defer { scene.unmount() }
                    try await scene.play()
                }
            }
            let beside = try FileManager.default.contentsOfDirectory(atPath: outer.directory).sorted()
            #expect(beside == ["ca.pem", "work"], "no file is written elsewhere")
        }
    }

    private func play() async throws {
        var before: [String: Data] = [:]
        var advice: String?
        for step in self.fault.steps {
            if case .run(let run) = step {
                before = self.contents()
                advice = try await self.perform(run)
            } else {
                try await self.perform(step, on: nil, since: .init(self))
            }
        }
        try self.compare(with: before)
        // Parts of files, and the cases' own bytes, are not such contents. A sparse file would take minutes.
        let isOther =
            self.fault.raw != nil
            || self.fault.steps.contains { step in
                if case .run(let run) = step { run.run.contains("--range") } else { false }
            }
            || self.fault.left.values.contains { remains in
                if case .pieces = remains { true } else { false }
            }
        if let advice, !isOther { try await self.follow(advice) }
    }

    // MARK: Steps

    /// The counts when a run began.
    struct Mark: Sendable {
        var requests: Int
        var bytes: Int64
        var otherRequests: Int

        init(_ scene: FaultScene) {
            let log = scene.origin.log.snapshot()
            self.requests = log.requests.count
            self.bytes = log.bytesSent
            self.otherRequests = scene.other.log.snapshot().requests.count
        }
    }

    private func perform(_ step: FaultStep, on process: Int32?, since mark: Mark) async throws {
        switch step {
        case .run(let run): _ = try await self.perform(run)
        case .sent(let bytes): await self.origin.log.waitForBytes(sent: mark.bytes + bytes)
        case .requested(let count): await self.origin.log.waitForRequests(mark.requests + count)
        case .done(let bytes): try await self.waitForProgress(bytes)
        case .signal(let number): kill(try self.require(process), number)
        case .replace(let path, let seed, let size, let etag):
            self.origin.replace(path, seed: seed, size: size, etag: etag)
        case .disconnect: try await self.origin.disconnect()
        case .write(let name, let text): try Data(self.expand(text).utf8).write(to: self.url(name))
        case .fill(let name, let size): self.fill(name, size)
        case .overwrite(let name, let offset, let text, false): try self.overwrite(name, at: offset, text)
        case .overwrite(let name, let offset, let text, true):
            try self.command.keepingTime(of: name) { try self.overwrite(name, at: offset, text) }
        case .truncate(let name, let length):
            let handle = try FileHandle(forUpdating: self.url(name))
            try handle.truncate(atOffset: UInt64(length))
            try handle.close()
        case .remove(let name): try FileManager.default.removeItem(at: self.url(name))
        case .rename(let name, let target):
            try FileManager.default.moveItem(at: self.url(name), to: self.url(target))
        case .link(let name, let target):
            try FileManager.default.createSymbolicLink(atPath: self.command.path(name), withDestinationPath: target)
        case .directory(let name):
            try FileManager.default.createDirectory(at: self.url(name), withIntermediateDirectories: false)
        case .mount(let name, let options):
            try FileManager.default.createDirectory(
                at: self.url(name), withIntermediateDirectories: true)
            guard mount("segdl", self.command.path(name), "tmpfs", 0, options) == 0 else {
                throw FaultError("mount: errno \(errno)")
            }
        case .unmapped(let name):
            let maps = FileManager.default.contents(atPath: "/proc/\(try self.require(process))/maps") ?? Data()
            let isMapped = String(decoding: maps, as: UTF8.self).contains(name)
            #expect(!maps.isEmpty && !isMapped, "\(name) is mapped")
        }
    }

    private func overwrite(_ name: String, at offset: Int64, _ text: String) throws {
        let handle = try FileHandle(forUpdating: self.url(name))
        try handle.seek(toOffset: UInt64(offset))
        try handle.write(contentsOf: Data(text.utf8))
        try handle.close()
    }

    private func url(_ name: String) -> URL { URL(fileURLWithPath: self.command.path(name)) }

    private func require(_ process: Int32?) throws -> Int32 {
        guard let process else { throw FaultError("this step needs a running command") }
        return process
    }

    /// Polls the command's events until one reports this number of bytes.
    private func waitForProgress(_ bytes: Int64) async throws {
        while true {
            let names = try FileManager.default.contentsOfDirectory(atPath: self.command.directory)
            for name in names where name.hasPrefix(".") && name.hasSuffix(".out") {
                let text = FileManager.default.contents(atPath: self.command.path(name)) ?? Data()
                let events = Child.events(in: String(decoding: text, as: UTF8.self))
                let isDone = events.contains { ($0["bytes_done"] as? Int64 ?? 0) >= bytes }
                if isDone { return }
            }
            // Not a delay for correctness: it leaves the processor to the processes under test.
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Writes until the file system is full.
    private func fill(_ name: String, _ size: Int64) {
        let descriptor = open(self.command.path(name), O_WRONLY | O_CREAT, 0o666)
        defer { close(descriptor) }
        let page = [UInt8](repeating: 0x5A, count: 4096)
        var left = size
        while left > 0 {
            let count = write(descriptor, page, page.count)
            if count <= 0 { return }
            left -= Int64(count)
        }
    }

    private func unmount() {
        for case .mount(let name, _) in self.fault.steps {
            // 2 is MNT_DETACH.
            umount2(self.command.path(name), 2)
        }
    }

    // MARK: Runs

    /// - Returns: The command that it prints to resume the download, if it is a command and nothing else.
    private func perform(_ run: FaultRun) async throws -> String? {
        let mark = Mark(self)
        var environment: [String: String] = [:]
        if let disk = run.disk {
            environment = ["LD_PRELOAD": try await FaultyDisk.library.value, "FAULTY_DISK": disk]
        }
        let failure = Mutex<(any Error)?>(nil)
        let arguments = run.run.map { self.plain(self.expand($0)) }
        let outcome = try await self.command.run(arguments, shell: run.shell, environment: environment) { process in
            do {
                for step in run.meanwhile { try await self.perform(step, on: process, since: mark) }
            } catch is CancellationError {
                // The run ended before the step; its result is checked below.
            } catch {
                failure.withLock { $0 = error }
                kill(process, SIGKILL)
            }
        }
        if let error = failure.withLock({ $0 }) { throw error }
        self.check(outcome, of: run)
        self.check(requestsSince: mark, of: run, outcome)
        let words = "To resume: segdl "
        guard let start = outcome.errors.range(of: words, options: .backwards)?.upperBound else { return nil }
        let line = outcome.errors[start...].prefix { $0 != "\n" }
        // Secrets must be given again.
        return line.contains(" with the same ") ? nil : String(line.hasSuffix(".") ? line.dropLast() : line)
    }

    /// Does what the last run advised: that is accepted, and never makes a wrong file.
    private func follow(_ advice: String) async throws {
        let before = self.contents()
        let outcome = try await self.command.run([], shell: "\"$0\" \(advice)")
        #expect(![1, 2].contains(outcome.status) && outcome.status >= 0, "segdl \(advice): \(outcome)")
        let after = self.contents()
        for (name, data) in after where before[name] != data && !name.contains(".segdl") && !name.hasPrefix(".") {
            let isRight = Self.seeds.contains { seed in
                OriginContent(seed: seed).firstMismatch(
                    inFileAt: self.command.path(name), length: Int64(data.count)) == nil
            }
            #expect(isRight, "segdl \(advice) makes a wrong \(name): \(outcome)")
        }
    }

    /// The seeds of the contents that origins have in the cases. A wrong file is a mixture of them, or ends too early.
    private static let seeds: ClosedRange<UInt64> = 0...9

    /// If a case has several runs, the query selects the origin's behaviour in this run and is removed from the URL.
    private func plain(_ argument: String) -> String {
        let runs = self.fault.steps.count { if case .run = $0 { true } else { false } }
        let base = self.origin.url("")
        guard runs > 1, argument.hasPrefix(base + "/") else { return argument }
        return self.origin.plainURL(String(argument.dropFirst(base.count)))
    }

    private func expand(_ text: String) -> String {
        let replacements = [
            ("{origin}", self.origin.url("")), ("{other}", self.other.url("")), ("{ca}", "../ca.pem"),
            ("{port}", "\(self.origin.port)"), ("{raw}", self.rawURL), ("{silent}", "127.0.0.1:\(self.silence.port)"),
        ]
        return replacements.reduce(text) { $0.replacingOccurrences(of: $1.0, with: $1.1) }
    }

    private var rawURL: String {
        let answers = (self.fault.raw ?? []).map { answer in
            "raw=" + answer.utf8.map { ($0 < 16 ? "%0" : "%") + String($0, radix: 16) }.joined()
        }
        return self.origin.url("/0/f.bin?" + answers.joined(separator: "&"))
    }

    private func check(_ outcome: Segdl.Outcome, of run: FaultRun) {
        let text = outcome.output + outcome.errors
        #expect(outcome.status == run.exit, "\(outcome)")
        for phrase in run.says {
            let isSaid = text.contains(self.expand(phrase))
            #expect(isSaid, "\"\(phrase)\" is missing: \(outcome)")
        }
        for phrase in run.hides {
            let isSaid = text.contains(self.expand(phrase))
            #expect(!isSaid, "\"\(phrase)\" is printed: \(outcome)")
        }
        // For every run: one line for a failure, with its code, and no control sequence.
        let failures = outcome.errors.split(separator: "\n").filter { $0.contains("segdl: error") }
        let word = ExitStatus.words[outcome.status]
        // Several files have a line each, and one for the total.
        let count = word == nil ? 0 : outcome.status == 16 ? failures.count : 1
        #expect(failures.count == count, "\(outcome)")
        let isNamed = word == nil || failures.last?.hasPrefix("segdl: error[\(word ?? "")]: ") == true
        #expect(isNamed, "\(outcome)")
        for line in failures {
            #expect(line.hasSuffix(".") || line.hasSuffix("?"), "\(outcome)")
        }
        let controls = text.unicodeScalars.filter {
            $0 != "\n" && ($0.properties.generalCategory == .control || $0.properties.generalCategory == .format)
        }
        #expect(controls.isEmpty, "\(outcome)")
    }

    private func check(requestsSince mark: Mark, of run: FaultRun, _ outcome: Segdl.Outcome) {
        let requests = self.origin.log.snapshot().requests.dropFirst(mark.requests)
        let others = self.other.log.snapshot().requests.dropFirst(mark.otherRequests)
        if let range = run.requests {
            #expect(range.contains(requests.count), "\(requests.count) requests; \(outcome)")
        }
        if let range = run.otherRequests {
            #expect(range.contains(others.count), "\(others.count) requests to the other; \(outcome)")
        }
        let methods = Set((requests + others).map(\.method))
        #expect(methods.isSubset(of: ["GET"]), "\(methods)")
        let values = requests.flatMap(\.headers).map(\.value)
        for value in run.sent {
            #expect(values.contains(value), "\(value) was not sent: \(values)")
        }
        let leaks = others.flatMap(\.headers).filter { field in
            let isLeak = run.unsent.contains { field.value.contains($0) || field.name.contains($0) }
            return isLeak
        }
        #expect(leaks.isEmpty)
    }

    // MARK: What is left

    private func contents() -> [String: Data] {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: self.command.directory)) ?? []
        return names.reduce(into: [:]) { $0[$1] = FileManager.default.contents(atPath: self.command.path($1)) }
    }

    private func compare(with before: [String: Data]) throws {
        let names = try FileManager.default.subpathsOfDirectory(atPath: self.command.directory)
        #expect(names.sorted() == self.fault.left.keys.sorted(), "what is left")
        for (name, remains) in self.fault.left where names.contains(name) {
            let path = self.command.path(name)
            let type = try FileManager.default.attributesOfItem(atPath: path)[.type] as? FileAttributeType
            switch remains {
            case .directory: #expect(type == .typeDirectory, "\(name)")
            case .link(let target):
                let destination = try? FileManager.default.destinationOfSymbolicLink(atPath: path)
                #expect(destination == target, "\(name)")
            case .present: #expect(type == .typeRegular, "\(name)")
            case .unchanged:
                let isSame = type == .typeRegular && FileManager.default.contents(atPath: path) == before[name]
                #expect(isSame, "\(name) was changed")
            case .text(let text):
                #expect(FileManager.default.contents(atPath: path) == Data(text.utf8), "\(name)")
            case .content(let seed, let size):
                let mismatch = OriginContent(seed: seed).firstMismatch(inFileAt: path, length: size)
                #expect(type == .typeRegular && mismatch == nil, "\(name)")
            case .pieces(let seed, let offsets, let length):
                for offset in offsets {
                    let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
                    try handle.seek(toOffset: UInt64(offset))
                    let bytes = try handle.read(upToCount: Int(length)).map { Array($0) }
                    try handle.close()
                    let isRight = bytes == OriginContent(seed: seed).bytes(offset..<(offset + length))
                    #expect(isRight, "\(name) at \(offset)")
                }
            }
        }
    }
}

/// The codes of the exit statuses that are failures.
private enum ExitStatus {
    static let words: [Int32: String] = [
        1: "internal", 2: "usage", 3: "file", 4: "network", 5: "tls", 6: "auth", 7: "protocol", 8: "server",
        9: "integrity", 10: "changed", 11: "policy", 12: "exists", 13: "space", 14: "state", 16: "partial",
    ]
}
