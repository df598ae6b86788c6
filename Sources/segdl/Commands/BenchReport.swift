import SegmentedDownload

/// What all numbers of segments brought, and which of them is enough.
struct BenchReport {
    /// The fewest segments that bring this part of the most are enough.
    static let kneeShare = 0.95

    static let heading =
        "segments        MB/s   seconds        size   CPU s/GiB    peak MiB   connections"

    /// One number of segments.
    struct Row: Encodable {
        let v = 1
        let event = "measured"
        /// Absent for `auto`.
        let segments: Int?
        let bytes: Int64
        let seconds: Double
        /// Bytes per second.
        let rate: Int64
        let cpuSeconds: Double
        let cpuSecondsPerGib: Double
        let memoryPeak: Int64?
        let connectionsPeak: Int

        init(_ segments: DownloadOptions.Segments, _ figures: BenchFigures) {
            self.segments =
                switch segments {
                case .automatic: nil
                case .exactly(let count): count
                }
            self.bytes = figures.bytes
            self.seconds = Self.rounded(figures.seconds)
            self.rate = Int64(figures.rate)
            self.cpuSeconds = Self.rounded(figures.processor)
            self.cpuSecondsPerGib = Self.rounded(figures.processorPerGibibyte)
            self.memoryPeak = figures.peak
            self.connectionsPeak = figures.connectionsPeak
        }

        private static func rounded(_ value: Double) -> Double { (min(value, 1e12) * 1000).rounded() / 1000 }

        var text: String {
            let memory = self.memoryPeak.map { Self.text(Double($0) / 1_048_576, 1) } ?? "?"
            let cells: [(text: String, width: Int)] = [
                (self.segments.map { "\($0)" } ?? "auto", 8),
                (Self.text(Double(self.rate) / 1e6, 1), 12),
                (Self.text(self.seconds, 2), 10),
                (ByteCount(self.bytes).description, 12),
                (Self.text(self.cpuSecondsPerGib, 2), 12),
                (memory, 12),
                ("\(self.connectionsPeak)", 14),
            ]
            return cells.map { String(repeating: " ", count: max($0.width - $0.text.count, 0)) + $0.text }.joined()
        }

        /// With so many digits behind the point.
        private static func text(_ value: Double, _ digits: Int) -> String {
            let scale = digits == 1 ? 10 : 100
            let number = Int64((min(value, 1e12) * Double(scale)).rounded())
            let fraction = "\(number % Int64(scale))"
            return "\(number / Int64(scale)).\(String(repeating: "0", count: digits - fraction.count))\(fraction)"
        }
    }

    /// Where more segments stop bringing more.
    struct Knee: Encodable {
        let v = 1
        let event = "knee"
        /// Absent where no number was tried.
        let segments: Int?
        /// Bytes per second that they bring, and the most that any number brought.
        let rate: Int64
        let rateMost: Int64
        /// Whether every run was over in less than a second: most of what was measured is how it begins.
        let brief: Bool

        var text: String {
            guard let segments else { return "No number of segments was tried." }
            if self.brief {
                return
                    "The file is too short to tell: no run took a second. Take a larger one, or believe the beginning."
            }
            let share = self.rateMost > 0 ? Int((Double(self.rate) / Double(self.rateMost) * 100).rounded(.down)) : 0
            let tenths = Int64((Double(self.rate) / 1e5).rounded())
            return "The knee: \(segments) \(segments == 1 ? "segment brings" : "segments bring") "
                + "\(tenths / 10).\(tenths % 10) MB/s, \(share) % of the most."
        }
    }

    private var rows: [Row] = []

    /// Adds the median run, by rate.
    mutating func add(_ segments: DownloadOptions.Segments, _ figures: [BenchFigures]) -> Row {
        let row = Row(segments, figures.sorted { $0.rate < $1.rate }[(figures.count - 1) / 2])
        self.rows.append(row)
        return row
    }

    var knee: Knee {
        let most = self.rows.map(\.rate).max() ?? 0
        let enough = self.rows.filter { row in
            row.segments != nil && Double(row.rate) >= Double(most) * Self.kneeShare
        }.min { ($0.segments ?? 0) < ($1.segments ?? 0) }
        // Where `auto` brought more than any number that was tried, the best of these is told.
        let tried = self.rows.filter { $0.segments != nil }
        let best = enough ?? tried.max { $0.rate < $1.rate }
        return Knee(
            segments: best?.segments, rate: best?.rate ?? 0, rateMost: most,
            brief: self.rows.allSatisfy { $0.seconds < 1 })
    }
}
