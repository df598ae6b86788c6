import Foundation
import SegmentedDownloadCore
import Testing

@Suite("Download options")
struct DownloadOptionsTests {
    /// Options of which each has another value than its default.
    static var changed: DownloadOptions {
        var options = DownloadOptions()
        options.segments = .exactly(3)
        options.priority = 0.25
        options.bytesPerSecond = 1000
        options.splitLengthMinimum = 2000
        options.continuation = .must
        options.onChange = .restart
        options.ifExists = .rename
        options.digests = [ExpectedDigest("crc32=00000001")!]
        options.computedDigests = [.sha256, .crc64nvme]
        options.retries = 3
        options.retryDelay = .milliseconds(4)
        options.retryTime = .seconds(5)
        options.stallTimeout = .seconds(6)
        options.speedMinimum = 1000
        options.speedTime = .seconds(9)
        options.headTimeout = .seconds(7)
        options.timeLimit = .seconds(8)
        options.lengthMaximum = 9000
        options.lengthExpected = 10_000
        options.part = DownloadOptions.Part(first: 11, last: 12)
        options.createsDirectories = false
        options.rootDirectory = "/srv"
        options.allowsPrivateAddresses = false
        options.acceptsContentCodings = false
        options.keepsRemoteTime = true
        options.allocates = false
        options.syncPolicy = .end
        return options
    }

    private static func texts(_ options: DownloadOptions) -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: Mirror(reflecting: options).children.map { ($0.label ?? "", "\($0.value)") })
    }

    @Test("Every option is stored and read again")
    func roundTrip() throws {
        let (changed, defaults) = (Self.texts(Self.changed), Self.texts(DownloadOptions()))
        for (name, value) in changed { #expect(value != defaults[name], "this test does not change \(name)") }
        let read = try JSONDecoder().decode(DownloadOptions.self, from: JSONEncoder().encode(Self.changed))
        // By name, so that an option that is not read is named.
        for (name, value) in Self.texts(read) { #expect(value == changed[name], "\(name) is not read") }
        #expect(read == Self.changed)
        let plain = try JSONDecoder().decode(DownloadOptions.self, from: JSONEncoder().encode(DownloadOptions()))
        #expect(plain == DownloadOptions())
    }

    @Test("An option that is missing has its default")
    func missing() throws {
        let read = try JSONDecoder().decode(DownloadOptions.self, from: Data(#"{"retries":7,"unknown":1}"#.utf8))
        var expected = DownloadOptions()
        expected.retries = 7
        #expect(read == expected)
    }

    @Test("The head timeout of an earlier version is read, unless it was the default; a given one of 30 s is kept")
    func headTimeout() throws {
        func read(_ text: String) throws -> Duration? {
            try JSONDecoder().decode(DownloadOptions.self, from: Data(text.utf8)).headTimeout
        }
        #expect(try read(#"{"headTimeout":[1,11553255926290448384]}"#) == nil)
        #expect(try read(#"{"headTimeout":[1,1553255926290448384]}"#) == .seconds(20))
        var options = DownloadOptions()
        options.headTimeout = .seconds(30)
        let again = try JSONDecoder().decode(DownloadOptions.self, from: JSONEncoder().encode(options))
        #expect(again.headTimeout == .seconds(30))
    }

    @Test(
        "An option with an impossible value is refused",
        arguments: [
            #"{"digests":["md5=0"]}"#, #"{"segments":"many"}"#, #"{"ifExists":"burn"}"#, #"{"priority":"x"}"#,
            #"{"syncPolicy":null,"lengthMaximum":1.5}"#,
        ])
    func impossible(text: String) {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(DownloadOptions.self, from: Data(text.utf8))
        }
    }

    @Test("A number outside its range is replaced by the nearest one inside")
    func clamped() {
        var options = DownloadOptions()
        options.segments = .exactly(0)
        options.priority = -1
        options.bytesPerSecond = 0
        options.splitLengthMinimum = -5
        options.retries = -1
        let clamped = options.clamped
        #expect(clamped.segments == .exactly(1) && clamped.bytesPerSecond == 1 && clamped.splitLengthMinimum == 1)
        #expect(clamped.priority > 0 && clamped.priority < 1e-300 && clamped.retries == 0)
        options.priority = 2
        #expect(options.clamped.priority == 1)
        #expect(Self.changed.clamped == Self.changed && DownloadOptions().clamped == DownloadOptions())
    }
}
