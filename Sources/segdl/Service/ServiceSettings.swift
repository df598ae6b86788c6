import SegmentedDownload

/// A limit of the service that can be changed while it runs: its name, its help, and what it does.
///
/// The command `limits`, the API and the database use these names and texts.
struct ServiceSetting: Sendable {
    let name: String
    let help: String
    let expectation: String
    private typealias Edit = @Sendable (inout ServiceSettings) -> Void
    private let edit: @Sendable (String) -> Edit?

    private init<Value: Sendable>(
        _ name: String, _ form: ValueForm<Value>, _ help: String,
        _ apply: @escaping @Sendable (inout ServiceSettings, Value) -> Void
    ) {
        self.name = name
        self.help = help
        self.expectation = form.expectation
        self.edit = { text in
            guard let value = form.read(text) else { return nil }
            let edit: Edit = { settings in apply(&settings, value) }
            return edit
        }
    }

    /// - Throws: ``DownloadError`` with code `usage` if the text is not a value of this setting.
    func apply(_ text: String, to settings: inout ServiceSettings) throws(DownloadError) {
        guard let edit = self.edit(text) else {
            throw DownloadError(.usage, "\(self.name) must be \(self.expectation), not \"\(text.shown)\"")
        }
        edit(&settings)
    }

    static let all = [
        ServiceSetting("max-connections", .connections, "Connections in all.") { $0.limits.connections = $1 },
        ServiceSetting("max-connection-per-server", .connections, "Connections to one server.") {
            $0.limits.connectionsPerHost = $1
        },
        ServiceSetting("max-concurrent-downloads", .connections, "Files at once.") { $0.limits.downloads = $1 },
        ServiceSetting(
            "limit-rate", .rate, "Bytes per second for all files together; 0 for no limit."
        ) { $0.limits.bytesPerSecond = $1 },
        ServiceSetting(
            "metered", ValueForm("pause|allow", "pause or allow") { NetworkOptions.Metered(rawValue: $0) },
            "Whether metered network interfaces are used."
        ) { $0.usesMetered = $1 == .allow },
        ServiceSetting(
            "between", ValueForm("HH:MM-HH:MM", "HH:MM-HH:MM, or always") { ServiceHours(argument: $0) },
            "The hours in which downloads run, such as 01:00-07:00, or always."
        ) { $0.hours = $1 },
        ServiceSetting(
            "min-free-space",
            ValueForm("SIZE[:SIZE]", "a size such as 1G, or two: pause below the first, resume at the second") {
                FreeSpaceLimit(argument: $0)
            },
            "All downloads pause when less space is free, and resume at twice that, or at a second SIZE; 0 for never."
        ) { $0.space = $1 },
    ]

    static func named(_ name: String) -> ServiceSetting? { Self.all.first { $0.name == name } }
}

extension ValueForm where Value == Int {
    fileprivate static let connections = ValueForm("N", "a number from 1 to \(SegmentCount.countMax)") { text in
        Int(text).flatMap { (1...SegmentCount.countMax).contains($0) ? $0 : nil }
    }
}

/// The values of all settings.
struct ServiceSettings: Hashable, Sendable {
    var limits: DownloadLimits
    var usesMetered: Bool
    var hours = ServiceHours.always
    var space = FreeSpaceLimit.none

    init(_ configuration: DownloadConfiguration) {
        self.limits = configuration.limits
        self.usesMetered = configuration.network.allowsMetered
    }
}

/// The hours of the day in which downloads run, in local time.
struct ServiceHours: Hashable, Sendable {
    /// Minutes since midnight; nil for the whole day. The end may be before the start: then midnight is between them.
    private let range: (start: Int, end: Int)?

    static let always = ServiceHours(range: nil)

    private init(range: (start: Int, end: Int)?) { self.range = range }

    init?(argument: String) {
        if argument == "always" {
            self = .always
            return
        }
        let ends = argument.split(separator: "-", omittingEmptySubsequences: false).map { Self.minutes($0) }
        guard ends.count == 2, let start = ends[0], let end = ends[1], start != end, start < Self.day else {
            return nil
        }
        self.init(range: (start, end))
    }

    private static let day = 24 * 60

    private static func minutes(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.count == 2 && $0.allSatisfy { ("0"..."9").contains($0) } }),
            let hours = Int(parts[0]), let minutes = Int(parts[1]), minutes < 60, hours * 60 + minutes <= Self.day
        else { return nil }
        return hours * 60 + minutes
    }

    /// - Parameter minute: Minutes since midnight, below 1440.
    func contains(_ minute: Int) -> Bool {
        guard let range else { return true }
        return range.start < range.end
            ? (range.start..<range.end).contains(minute) : minute >= range.start || minute < range.end
    }

    static func == (left: Self, right: Self) -> Bool {
        left.range?.start == right.range?.start && left.range?.end == right.range?.end
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(self.range?.start)
        hasher.combine(self.range?.end)
    }
}

/// How much space must be free for downloads to run.
struct FreeSpaceLimit: Hashable, Sendable {
    /// Bytes below which downloads pause.
    let pauseBelow: Int64
    /// Bytes from which they run again.
    let resumeAt: Int64

    static let none = FreeSpaceLimit(pauseBelow: 0, resumeAt: 0)

    private init(pauseBelow: Int64, resumeAt: Int64) {
        self.pauseBelow = pauseBelow
        self.resumeAt = resumeAt
    }

    init?(argument: String) {
        let sizes = argument.split(separator: ":", omittingEmptySubsequences: false).map {
            ByteCount(argument: String($0))?.bytes
        }
        guard let low = sizes.first ?? nil, low >= 0 else { return nil }
        guard sizes.count > 1 else {
            let (twice, overflow) = low.multipliedReportingOverflow(by: 2)
            self.init(pauseBelow: low, resumeAt: overflow ? .max : twice)
            return
        }
        guard sizes.count == 2, let high = sizes[1], high >= low else { return nil }
        self.init(pauseBelow: low, resumeAt: high)
    }

    /// Whether downloads may run.
    func allows(free: Int64, isPaused: Bool) -> Bool { free >= (isPaused ? self.resumeAt : self.pauseBelow) }
}
