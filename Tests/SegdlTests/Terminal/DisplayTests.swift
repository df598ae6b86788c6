import SegmentedDownload
import TestSupport
import Testing

@testable import segdl

/// What a terminal shows of a run, compared with approved screens: `SEGDL_APPROVE=1 swift test --filter Display`.
@Suite("Display on a terminal")
struct DisplayTests {
    typealias File = DisplayScene.File
    typealias Setting = DisplayScene.Setting

    static let settings = [40, 80, 200].flatMap { columns in
        [true, false].map { Setting(columns: columns, isUTF8: $0) }
    }

    static let mebibyte: Int64 = 1 << 20
    static let gibibyte: Int64 = 1 << 30
    static let longName = "ubuntu-24.04.3-live-server-amd64-with-all-packages-and-a-name-beyond-every-line.iso"
    static let wideName = "東京オリンピック開会式の全録画・高画質版・字幕付き（第一部から第三部まで）.mkv"

    @Test("A bar for one file", arguments: Self.settings)
    func bar(setting: Setting) async throws {
        let file = File(name: "file.iso", length: 4 * Self.gibibyte, rate: 84 * Self.mebibyte)
        let scene = try DisplayScene(setting, [file])
        try scene.show("connecting")
        try await scene.run(to: .milliseconds(200))
        try scene.show("before a rate is known")
        try await scene.run(to: .seconds(5))
        try scene.show("after 5 s")
        try await scene.run(to: .seconds(20))
        try scene.show("after 20 s")
        scene.lose(0, "the server closed the connection before the end", delay: .seconds(8))
        try await scene.run(to: .seconds(23))
        try scene.show("waiting for a retry")
        scene.complete(0)
        try scene.show("complete")

        var text = scene.text
        for (name, length) in [(Self.longName, file.length), (Self.wideName, file.length), ("stream.bin", nil)] {
            let scene = try DisplayScene(setting, [File(name: name, length: length, rate: 84 * Self.mebibyte)])
            try await scene.run(to: .seconds(20))
            try scene.show(length == nil ? "a file of unknown length" : "a long name")
            scene.complete(0)
            try scene.show("complete")
            text += scene.text
        }
        let resumed = File(
            name: "resumed.iso", length: 4 * Self.gibibyte, rate: 700 * 1024, resumedFrom: 1000 * Self.mebibyte,
            connections: 16)
        let slow = try DisplayScene(setting, [resumed])
        try await slow.run(to: .seconds(3725), step: .seconds(5))
        try slow.show("resumed, after more than an hour, at a low rate")
        slow.interrupt()
        try slow.show("interrupted")
        try ApprovedScreen.check(text + slow.text, "bar-\(setting)")
    }

    /// Files of which some wait, fail or have unusual names.
    static let files = [
        File(name: "a.iso", length: 4 * gibibyte, rate: 40 * mebibyte),
        File(name: "small.txt", length: 9000, rate: 1 * mebibyte, connections: 1),
        File(name: longName, length: 700 * mebibyte, rate: 20 * mebibyte, startsAt: .seconds(1)),
        File(name: wideName, length: 2 * gibibyte, rate: 9 * mebibyte, startsAt: .seconds(2), connections: 2),
        File(name: "stream.bin", length: nil, rate: 3 * mebibyte, startsAt: .seconds(2), connections: 1),
        File(name: "missing.bin", length: 1 * mebibyte, rate: 1, startsAt: .seconds(3)),
        File(name: "unsteady.bin", length: 100 * mebibyte, rate: 5 * mebibyte, startsAt: .seconds(1)),
    ]

    @Test("A board for many files", arguments: Self.settings)
    func board(setting: Setting) async throws {
        let scene = try DisplayScene(setting, Self.files, queuedCount: 5)
        try await scene.run(to: .seconds(10))
        scene.fail(5, "the server has no such file (404)")
        scene.lose(6, "the connection was reset", delay: .seconds(4))
        try await scene.run(to: .seconds(12))
        try scene.show("some of 12 files")
        scene.interrupt()
        scene.finish()
        try scene.show("interrupted")

        let many = (0..<30).map { number -> File in
            let (length, rate) = (Int64(number % 7 + 1), Int64(number % 5 + 1))
            return File(
                name: "file-\(number).bin", length: length * 100 * Self.mebibyte, rate: rate * Self.mebibyte,
                connections: 2)
        }
        let full = try DisplayScene(setting, many)
        try await full.run(to: .seconds(30))
        try full.show("more files than rows")

        let pair = ["one.bin", "two.bin"].map { name -> File in
            File(name: name, length: 512 * Self.mebibyte, rate: 50 * Self.mebibyte)
        }
        let two = try DisplayScene(setting, pair)
        try await two.run(to: .seconds(5))
        try two.show("every length is known")
        try await two.run(to: .seconds(11))
        two.finish()
        try two.show("complete")
        try ApprovedScreen.check(scene.text + full.text + two.text, "board-\(setting)")
    }

    @Test("Maps of one file and of several", arguments: Self.settings)
    func map(setting: Setting) async throws {
        var setting = setting
        setting.hasMaps = true
        let one = try DisplayScene(setting, [Self.files[0]])
        try await one.run(to: .seconds(30))
        try one.show("one file")
        one.lose(0, "the connection was reset", delay: .seconds(4))
        try await one.run(to: .seconds(31))
        try one.show("waiting for a retry")
        one.complete(0)
        try one.show("complete")
        let several = try DisplayScene(setting, Array(Self.files.prefix(5)), queuedCount: 1)
        try await several.run(to: .seconds(12))
        try several.show("several files")
        try ApprovedScreen.check(one.text + several.text, "map-\(setting)")
    }
}
