import Foundation
import Testing

@testable import SegmentedDownload

/// The encoding of events, progress, results and errors.
@Suite("Encoded events")
struct EventCodingTests {
    private static let progress = {
        var progress = DownloadProgress()
        (progress.bytesDone, progress.bytesDurable, progress.bytesTotal) = (.max - 1, 700, .max)
        (progress.rate, progress.connections) = (0.1, 3)
        return progress
    }()

    private static let errors = [
        DownloadError(.network, "broken"), DownloadError(.network, "broken", isTransient: false),
        DownloadError(.server, "503", isTransient: false, status: 503),
        DownloadError(.server, "503", status: 503, retryAfter: .seconds(120)),
        DownloadError(.space, "full \"x\" ü", hint: "free some", remedy: nil, isTransient: true, errno: 28),
        DownloadError(.exists, "there", remedy: .keepBothOrReplace),
        DownloadError(DownloadError.Code(rawValue: "later"), "later", remedy: Remedy(rawValue: "later")),
    ]

    private static let results = [
        DownloadResult(
            reported: "a", bytes: .max, bytesFetched: 0, requests: 0, connectionsPeak: 0, duration: .zero, crc32: nil,
            digests: [], verifiedBy: .none, wasAlreadyComplete: true),
        DownloadResult(
            reported: "ü\n", bytes: 1, bytesFetched: 2, requests: 3, connectionsPeak: 4,
            duration: .seconds(8_000_000) + .nanoseconds(123_456_789), crc32: "00000001",
            digests: ExpectedDigest(.crc32, hex: "00000001").map { [$0] } ?? [], verifiedBy: .lastModified,
            wasAlreadyComplete: false),
    ]

    private static let started = DownloadEvent.Started(
        url: "http://host/", path: "a", bytesTotal: nil, resumedFrom: 5, isSegmented: false, validator: nil)
    private static let segment = DownloadEvent.SegmentChange(segment: 0, start: 1, end: nil, state: .split, source: nil)

    /// Every case, with every value of each enumeration, and with and without each optional.
    private static let events: [DownloadEvent] =
        [
            .started(Self.started),
            .started(
                DownloadEvent.Started(
                    url: "http://host/", path: "a", bytesTotal: 6, resumedFrom: 5, isSegmented: true,
                    validator: "ETag \"a\"")),
            .progress(DownloadProgress()), .progress(Self.progress), .paused(Self.progress), .segment(Self.segment),
            .checkpoint(bytesDurable: .max), .note("line"), .cancelled,
        ]
        + [DownloadEvent.SegmentChange.State.opened, .split, .done, .retry].map {
            .segment(.init(segment: 7, start: 1, end: 2, state: $0, source: "http://host/"))
        }
        + DownloadState.allCases.map { .state($0) }
        + Self.results.map { .completed($0) }
        + Self.errors.flatMap { error -> [DownloadEvent] in
            [
                .failed(error, Self.progress), .retrying(error, attempt: 2, delay: .nanoseconds(1)),
                .retrying(error, attempt: 1, delay: .milliseconds(30_001)),
            ]
        }

    private static func encoded(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    private static func copy<Value: Codable>(_ value: Value) throws -> Value {
        try JSONDecoder().decode(Value.self, from: Data(try Self.encoded(value).utf8))
    }

    @Test("Every event is decoded as it was encoded")
    func events() throws {
        for event in Self.events { #expect(try Self.copy(event) == event) }
    }

    @Test("An event's name is the one that it is encoded with")
    func names() throws {
        for event in Self.events { #expect(try Self.name(of: event) == event.name) }
        #expect(DownloadEvent.retrying(Self.errors[0], attempt: 1, delay: .zero).name == "retry")
    }

    @Test("Progress, results and errors are decoded as they were encoded")
    func values() throws {
        for progress in [Self.progress, DownloadProgress()] { #expect(try Self.copy(progress) == progress) }
        for result in Self.results { #expect(try Self.copy(result) == result) }
        for error in Self.errors { #expect(try Self.copy(error) == error) }
    }

    @Test("The article on servers shows every event as it is encoded")
    func examples() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(components: "..", "..", "..").standardizedFileURL
        let page = try String(
            contentsOf: root.appending(path: "Sources/SegmentedDownload/SegmentedDownload.docc/Servers.md"),
            encoding: .utf8)
        let lines = page.split(separator: "\n").filter { $0.hasPrefix("{") }
        var names: Set<String> = []
        for line in lines {
            let event = try JSONDecoder().decode(DownloadEvent.self, from: Data(line.utf8))
            #expect(try Self.encoded(event) == line)
            names.insert(try Self.name(of: event))
        }
        #expect(names == Set(try Self.events.map(Self.name)) && names.count == 11)
    }

    @Test("A path is encoded as text: one string, as a history line and an event have it")
    func paths() throws {
        let started = DownloadEvent.Started(
            url: "http://host/", path: "/d/ü \"a\"", bytesTotal: 6, resumedFrom: 5, isSegmented: true, validator: nil)
        #expect(
            try Self.encoded(started)
                == #"{"bytes_total":6,"path":"/d/ü \"a\"","resumed_from":5,"segmented":true,"url":"http://host/"}"#)
        var result = Self.results[0]
        result.path = "-"
        #expect(
            try Self.encoded(result)
                == #"{"already_complete":true,"bytes":9223372036854775807,"bytes_fetched":0,"connections_peak":0,"#
                + #""digests":[],"path":"-","requests":0,"seconds":0,"verified_by":"none"}"#)
        let entry = HistoryEntry(
            time: 1, id: "a", url: "http://host/", path: "d/a", bytes: 2, outcome: .failed, code: "file",
            message: "m", userInfo: ["k": "v"])
        #expect(
            try Self.encoded(entry)
                == #"{"bytes":2,"code":"file","id":"a","message":"m","outcome":"failed","path":"d/a","time":1,"#
                + #""url":"http://host/","user_info":{"k":"v"}}"#)
        #expect(try Self.copy(entry) == entry)
        var short = entry
        (short.code, short.message) = (nil, nil)
        #expect(
            try Self.encoded(short)
                == #"{"bytes":2,"id":"a","outcome":"failed","path":"d/a","time":1,"url":"http://host/","#
                + #""user_info":{"k":"v"}}"#)
        #expect(try Self.copy(short) == short)
    }

    private static func name(of event: DownloadEvent) throws -> String {
        struct Named: Decodable {
            let event: String
        }
        return try JSONDecoder().decode(Named.self, from: Data(try Self.encoded(event).utf8)).event
    }

    @Test(
        "What is no event is refused",
        arguments: [
            "{}", "{\"event\":\"later\"}", "{\"event\":\"progress\"}", "{\"event\":\"state\",\"state\":\"x\"}",
            "{\"attempt\":1,\"delay\":1e300,\"event\":\"retry\","
                + "\"error\":{\"code\":\"a\",\"message\":\"b\",\"transient\":true}}",
        ])
    func refused(text: String) {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(DownloadEvent.self, from: Data(text.utf8)) }
    }
}
