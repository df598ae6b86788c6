import Foundation
import Testing

@testable import segdl

#if canImport(Glibc)
    import Glibc
#endif

/// The log file of a service that runs for months.
@Suite struct ServiceLogTests {
    /// A log that replaces the descriptor of a sink.
    private struct Subject {
        let command: Segdl
        let log: ServiceLog
        let sink: LineSink

        func write(_ text: String) {
            self.sink.send(text)
            self.sink.drain()
        }

        func text(_ name: String) -> String? {
            FileManager.default.contents(atPath: self.command.path(name)).map { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// Runs `body` with a log of at most ten bytes, and one message more.
    private static func run(_ body: (Subject) throws -> Void) async throws {
        try await withCommand { command in
            let descriptor = open("/dev/null", O_WRONLY | O_CLOEXEC)
            defer { close(descriptor) }
            let log = ServiceLog(command.path("log"), descriptors: [descriptor], lengthMax: 10)
            try body(
                Subject(command: command, log: log, sink: LineSink(descriptor: descriptor) { log.prepare() }))
        }
    }

    @Test("Nothing is written to the file before the service answers")
    func before() async throws {
        try await Self.run { subject in
            subject.write("early")
            #expect(subject.text("log") == nil)
            subject.log.begin()
            subject.write("a")
            #expect(subject.text("log") == "a")
        }
    }

    @Test("A file that was renamed or removed is begun anew with the next message")
    func renamed() async throws {
        try await Self.run { subject in
            subject.log.begin()
            subject.write("a")
            let path = subject.command.path("log")
            try FileManager.default.moveItem(atPath: path, toPath: subject.command.path("old"))
            subject.write("b")
            try FileManager.default.removeItem(atPath: path)
            subject.write("c")
            #expect(subject.text("old") == "a" && subject.text("log") == "c")
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
            #expect(mode as? Int == 0o600)
        }
    }

    @Test("A long file is set aside while the service runs, so that there are two short ones")
    func bounded() async throws {
        try await Self.run { subject in
            subject.log.begin()
            for message in ["1 long message", "2 long message", "3 long message"] { subject.write(message) }
            #expect(subject.text("log") == "3 long message" && subject.text("log.1") == "2 long message")
        }
    }

    @Test("A long file of an earlier run is set aside at the start")
    func earlier() async throws {
        try await Self.run { subject in
            try Data("long message".utf8).write(to: URL(fileURLWithPath: subject.command.path("log")))
            subject.log.begin()
            #expect(subject.text("log") == "" && subject.text("log.1") == "long message")
        }
    }
}
