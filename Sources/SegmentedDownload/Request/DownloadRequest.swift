import SegmentedDownloadCore

/// What to fetch, where to put it, and how.
public struct DownloadRequest: Sendable {
    /// Where the file goes.
    public enum Destination: Hashable, Sendable {
        /// This path; missing directories are created.
        case file(String)
        /// Into this directory, under the name the response suggests (`Content-Disposition`, else the URL's last component),
        /// or one made by a template.
        case directory(String, name: NameTemplate? = nil)
        /// To this open file descriptor, such as standard output, in order while segments are fetched in parallel; nothing is kept.
        /// As much as 64 MiB is fetched ahead of whoever reads there. Of what was written nothing can be taken back: such a download is
        /// fetched from one source, and cannot be paused and gone on with. The descriptor is left open.
        case descriptor(Int32)
    }

    /// How many connections fetch the file.
    public enum Segments: Hashable, Sendable {
        /// As many as pay.
        case automatic
        /// Exactly so many, at least one, while that much work is left.
        case exactly(Int)

        var setting: DownloadSettings.Segments {
            switch self {
            case .automatic: .automatic
            case .exactly(let count): .exactly(max(count, 1))
            }
        }
    }

    /// What to do about what an earlier run left.
    public enum Continuation: String, Hashable, Sendable, CaseIterable {
        /// Go on with it if it is of use, begin anew if not.
        case auto
        /// Go on with it or fail.
        case must
        /// Begin anew.
        case no
    }

    /// What to do when the remote file is another one than the one begun with.
    public enum ChangePolicy: String, Hashable, Sendable, CaseIterable {
        /// Fail, and keep what there is.
        case fail
        /// Begin anew; the old part is kept until the new one has begun.
        case restart
    }

    /// What to do when the destination exists.
    public enum ExistingFilePolicy: String, Hashable, Sendable, CaseIterable {
        /// Succeed without fetching if it is the remote file, else fail.
        case verify
        /// Succeed without a look.
        case skip
        /// Choose another name, with a number.
        case rename
        /// Replace it once the new file is complete.
        case overwrite
        /// Fail.
        case fail
    }

    /// Where the file is. Fields, user name and password go to this origin only.
    public var source: SourceURL
    /// Other sources of the same bytes: asked in this order where one fails, and at the same time once they are proven to
    /// have the same bytes. Of all sources the first 200 different ones are used.
    public var mirrors: [SourceURL] = []
    /// Where the file goes. Relative paths begin in the group's directory.
    public var destination: Destination
    /// The caller's name for the download, unique in its group; its number if absent.
    public var id: Download.ID?
    /// Above 0, up to 1: beside other downloads its share of connections and bytes is in proportion to it. What lies outside is
    /// taken for the nearest that is allowed; ``Download/update(priority:)`` changes it.
    public var priority = 0.5
    /// Bytes of bodies per second for this file, at least 1; absent for no limit.
    public var bytesPerSecond: Int64?
    /// What the caller wants to find again: kept in the manifest and echoed in events, never sent. Together with ``id`` at most
    /// 64 KiB.
    public var userInfo: [String: String] = [:]
    /// Fields sent to the source's own origin, in order; never to another after a redirect. Those that frame the request or
    /// say which part of the file is asked for, such as `Range`, cannot be given: see ``validate()``.
    public var fields: [(name: String, value: String)] = []
    /// What the source's own origin is shown to let us in; those in a source's URL go before them.
    public var credentials: Credentials?
    /// How many connections fetch the file; ``Download/update(segments:)`` changes it.
    public var segments: Segments = .automatic
    /// No segment is cut smaller, in bytes. Absent, a file is cut into 1 MiB at the least, and what is left at its end as small as
    /// pays for the requests.
    public var splitLengthMinimum: Int64?
    /// What to do about what an earlier run left.
    public var continuation: Continuation = .auto
    /// What to do when the remote file is another one than the one begun with.
    public var onChange: ChangePolicy = .fail
    /// What to do when the destination exists.
    public var ifExists: ExistingFilePolicy = .verify
    /// Digests the file must have. Where one is wrong the download fails with code `integrity`, and the final name never appears.
    public var digests: [ExpectedDigest] = []
    /// Digests to be computed and told with the result, whatever they are: while the file is fetched, which costs no second look.
    public var computedDigests: [ExpectedDigest.Algorithm] = []
    /// Failures in a row without a byte of progress before giving up. Default 10; nil also means 10, but only 3 for an
    /// origin that was never reached.
    public var retries: Int?
    /// How long to wait before another attempt; absent, the default, up to half a second, and twice as long each time. What a server
    /// asks for with `Retry-After` is waited for in any case.
    public var retryDelay: Duration?
    /// How long after the last byte of progress another attempt may still be made; absent, the default, any time.
    public var retryTime: Duration?
    /// A connection that receives nothing for so long is replaced. Default 30 s.
    public var stallTimeout: Duration = .seconds(30)
    /// The whole response head must have come by then, connecting included. Default 30 s.
    public var headTimeout: Duration = .seconds(30)
    /// The whole file must have come by then, from the moment the download's turn comes, each time it goes on; else it fails with
    /// code `network`, and what has come is kept. Absent, the default, it takes as long as it takes.
    public var timeLimit: Duration?
    /// The longest file accepted, in bytes; a longer one fails with code `space`.
    public var lengthMaximum: Int64 = .max
    /// The length that the file must have, in bytes, as a metalink says it; absent, the default, for any. A source with a file of
    /// another length is passed over, and where none has the right one the download fails with code `integrity`.
    public var lengthExpected: Int64?
    /// Whether missing directories are created; if not, their absence is an error with code `file`.
    public var createsDirectories = true
    /// Whether the finished file gets the date that the server says it was last changed at.
    public var keepsRemoteTime = false
    /// Whether space for the whole file is reserved before its first byte is written.
    public var allocates = true
    /// When what is written is made durable. What a process leaves that is killed does not depend on it.
    public var syncPolicy = SyncPolicy.checkpoint

    /// Sources that are somebody else's choice: these are not told who asks.
    package var foreignSources: Set<SourceURL> = []
    /// How far ahead of who reads along bytes are fetched.
    package var windowLength = InOrderReader.windowLength
    /// Whether it rests until it is resumed.
    var startsPaused = false
    /// How many connections paid the last time, if that is remembered.
    var connectionsKnown: Int?

    public init(_ source: SourceURL, to destination: Destination = .directory(".")) {
        self.source = source
        self.destination = destination
    }

    /// All sources, each once, in the order they are tried.
    var sources: [SourceURL] {
        Array(
            ([self.source] + self.mirrors).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
                .prefix(Self.sourcesMax))
    }

    /// 200: the number of a claim's source is kept in one byte.
    static let sourcesMax = 200

    var settings: DownloadSettings {
        var settings = DownloadSettings()
        settings.segments = self.segments.setting
        settings.connectionsKnown = self.connectionsKnown
        settings.priority = self.priority
        if let length = self.splitLengthMinimum {
            settings.splitLengthMinimum = max(length, 1)
            settings.stealLengthMinimum = max(length, 1)
        }
        switch self.continuation {
        case .auto: settings.continuation = .auto
        case .must: settings.continuation = .must
        case .no: settings.continuation = .no
        }
        switch self.onChange {
        case .fail: settings.onChange = .fail
        case .restart: settings.onChange = .restart
        }
        switch self.ifExists {
        case .verify: settings.ifExists = .verify
        case .skip: settings.ifExists = .skip
        case .rename: settings.ifExists = .rename
        case .overwrite: settings.ifExists = .overwrite
        case .fail: settings.ifExists = .fail
        }
        if let retries = self.retries {
            settings.retry.attemptsMax = max(retries, 0)
            settings.retry.firstContactAttemptsMax = max(retries, 0)
        }
        settings.retry.delayFixed = self.retryDelay
        settings.retry.timeMax = self.retryTime
        settings.stallTimeout = self.stallTimeout
        settings.headTimeout = self.headTimeout
        settings.timeLimit = self.timeLimit
        settings.lengthMaximum = self.lengthMaximum
        settings.lengthExpected = self.lengthExpected
        settings.hosts = self.sources.map(\.host)
        settings.hasDigests = !self.digests.isEmpty
        settings.startsPaused = self.startsPaused
        return settings
    }
}
