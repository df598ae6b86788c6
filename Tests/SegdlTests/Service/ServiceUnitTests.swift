import Foundation
import SegmentedDownloadService
import Testing

@testable import SegmentedDownload
@testable import segdl

/// Parts of the service that need no process.
@Suite struct ServiceUnitTests {
    @Test(
        "Hours may cross midnight",
        arguments: [
            ("01:00-07:00", [60, 419], [0, 59, 420, 1439]), ("22:30-06:00", [1350, 1439, 0, 359], [360, 1349]),
            ("always", [0, 1439], []), ("00:00-24:00", [0, 1439], []),
        ])
    func hours(text: String, inside: [Int], outside: [Int]) throws {
        let hours = try #require(ServiceHours(argument: text))
        #expect(inside.allSatisfy { hours.contains($0) } && !outside.contains { hours.contains($0) })
    }

    @Test(
        "Other texts are no hours",
        arguments: [
            "", "1:00-2:00", "24:00-01:00", "01:00", "01:00-01:00", "01:60-02:00", "25:00-26:00", "+1:00-02:00",
        ])
    func noHours(text: String) { #expect(ServiceHours(argument: text) == nil) }

    @Test("Downloads pause below one amount of free space, and resume at a higher one")
    func space() throws {
        let limit = try #require(FreeSpaceLimit(argument: "1G:3G"))
        #expect(limit.allows(free: 1 << 30, isPaused: false) && !limit.allows(free: (1 << 30) - 1, isPaused: false))
        #expect(!limit.allows(free: (3 << 30) - 1, isPaused: true) && limit.allows(free: 3 << 30, isPaused: true))
        #expect(try #require(FreeSpaceLimit(argument: "1G")).resumeAt == 2 << 30)
        for text in ["", "3G:1G", "1G:2G:3G", "-1", "x"] { #expect(FreeSpaceLimit(argument: text) == nil, "\(text)") }
    }

    @Test("Events that --json wrote are read back")
    func records() throws {
        var progress = DownloadProgress()
        (progress.bytesDone, progress.bytesTotal, progress.rate, progress.connections) = (5, 10, 2, 3)
        var paused = DownloadProgress()
        (paused.bytesDone, paused.bytesTotal) = (5, 10)
        let digest = try #require(ExpectedDigest("crc32=00000000"))
        let events: [DownloadEvent] = [
            .started(
                .init(url: "http://x/a", path: "/a", bytesTotal: 10, resumedFrom: 1, isSegmented: true, validator: "v")),
            .progress(progress), .segment(.init(segment: 1, start: 0, end: 5, state: .opened, source: "http://x/a")),
            .retrying(DownloadError(.network, "reset"), attempt: 2, delay: .seconds(1)), .checkpoint(bytesDurable: 4),
            .note("note"), .state(.running), .paused(paused),
            .completed(
                DownloadResult(
                    reported: "/a", bytes: 10, bytesFetched: 9, requests: 2, connectionsPeak: 1, duration: .seconds(2),
                    crc32: "00000000", digests: [digest], verifiedBy: .digest, wasAlreadyComplete: false)),
        ]
        let file = TransferFile(id: "000000000000000a", path: "/a")
        for event in events {
            let line = EventRecord(event, of: file, time: .seconds(1)).jsonLine
            let record = try #require(EventRecord(line: line))
            #expect(DownloadEvent(record) == event, "\(line)")
            #expect(record.id == "000000000000000a")
        }
        let error = DownloadError(.server, "gone", hint: "look", status: 404)
        let failed = EventRecord(.failed(error, paused), of: file, time: .zero).jsonLine
        guard case .failed(let read, let at)? = try DownloadEvent(#require(EventRecord(line: failed))) else {
            Issue.record("no failure: \(failed)")
            return
        }
        #expect(read == error && at.bytesDone == 5)
        #expect(EventRecord(line: "{") == nil)
        #expect(try DownloadEvent(#require(EventRecord(line: #"{"event":"later","v":1,"time":0}"#))) == nil)
    }

    @Test("Server-sent events are read in pieces of any length", arguments: [1, 2, 3, 1000])
    func parser(length: Int) {
        let text = "id: r-1\nevent: progress\ndata: {\"a\":1}\n\n:\n\nevent: lost\ndata: {}\n\nid: r-2\nevent: x"
        var parser = ServiceEventParser()
        var bytes = Array(text.utf8)[...]
        var events: [ServiceEvent] = []
        while !bytes.isEmpty {
            events += parser.events(in: bytes.prefix(length))
            bytes = bytes.dropFirst(length)
        }
        #expect(
            events == [
                ServiceEvent(id: "r-1", name: "progress", data: "{\"a\":1}"), ServiceEvent(name: "lost", data: "{}"),
            ])
    }

    @Test("A reader of the log gets each event once, and is told of lost ones")
    func log() throws {
        let queue = DownloadQueue(database: "/none", directory: "/none")
        let log = EventLog(of: queue, reporters: [], elapsed: { .zero })
        #expect(log.batch(after: 0).entries.isEmpty && !log.batch(after: 0).isLost)
        for number in 1...EventLog.capacity + 10 {
            log.append(.note("\(number)"), TransferFile(id: "a", path: "/a"))
            if number == 5 { #expect(log.batch(after: 3).entries.map(\.number) == [4, 5]) }
        }
        let late = log.batch(after: 5)
        #expect(late.isLost && late.entries.first?.number == 11)
        var number = 10
        var count = 0
        while let last = log.batch(after: number).entries.last {
            #expect(!log.batch(after: number).isLost)
            count += last.number - number
            number = last.number
        }
        #expect(count == EventLog.capacity && number == log.numberLast)
        #expect(log.batch(after: number).entries.isEmpty)
        // The number of an event that is not there yet.
        #expect(log.batch(after: number + 1).isLost)
        #expect(late.entries.first?.line.contains(#""message":"11""#) == true)
    }

    @Test("The systemd unit quotes its command line")
    func units() {
        let unit = SystemdUnits.service(["/usr/bin/segdl", "daemon", "-d", #"/a "b"/%d/$x\"#], in: "/w %i")
        #expect(unit.contains(#"ExecStart="/usr/bin/segdl" "daemon" "-d" "/a \"b\"/%%d/$$x\\""#), "\(unit)")
        #expect(unit.contains("WorkingDirectory=/w %%i\n"), "\(unit)")
        // Downloads are the user's files: they have the modes that the user's other programs give theirs.
        #expect(!unit.contains("UMask"), "\(unit)")
    }
}
