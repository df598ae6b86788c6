import SegmentedDownload

/// The figures for every number of segments, and the smallest number that is fast enough.
struct BenchReport {
    /// The knee is the smallest number of segments that reaches this share of the highest rate.
    static let kneeShare = 0.95

    static let heading = Self.line([
        "segments", "rate", "seconds", "size", "CPU s/GiB", "peak mem", "connections",
    ])

    /// Together less than 80 columns.
    private static let widths = [8, 13, 9, 11, 12, 11, 13]

    private static func line(_ cells: [String]) -> String {
        zip(cells, self.widths).map { $0.rightAligned(in: $1) }.joined()
    }

    /// The figures for one number of segments.
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
            BenchReport.line([
                self.segments.map { "\($0)" } ?? "auto", ByteCount.perSecond(Double(self.rate)),
                Self.hundredths(self.seconds), "\(ByteCount(self.bytes))", Self.hundredths(self.cpuSecondsPerGib),
                self.memoryPeak.map { "\(ByteCount($0))" } ?? "?", "\(self.connectionsPeak)",
            ])
        }

        /// The number with two decimal places.
        private static func hundredths(_ value: Double) -> String {
            let number = Int64((min(value, 1e12) * 100).rounded())
            return "\(number / 100).\(number % 100 < 10 ? "0" : "")\(number % 100)"
        }
    }

    /// The smallest number of segments that reaches ``kneeShare`` of the highest rate.
    struct Knee: Encodable {
        let v = 1
        let event = "knee"
        /// Nil if only `auto` was measured.
        let segments: Int?
        /// Bytes per second with this number, and the highest rate of any number.
        let rate: Int64
        let rateMost: Int64
        /// Whether every run took less than a second, so that connecting dominates the rates.
        let brief: Bool

        var text: String {
            guard let segments else { return "No number of segments was measured." }
            if self.brief {
                return
                    "The file is too short: every run took less than a second. Use a larger file."
            }
            let share = self.rateMost > 0 ? Int((Double(self.rate) / Double(self.rateMost) * 100).rounded(.down)) : 0
            return "The knee: \(segments) \(segments == 1 ? "segment reaches" : "segments reach") "
                + "\(ByteCount.perSecond(Double(self.rate))), \(share) % of the highest rate."
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
        // If `auto` was much faster than every number, the knee is the fastest number.
        let tried = self.rows.filter { $0.segments != nil }
        let best = enough ?? tried.max { $0.rate < $1.rate }
        return Knee(
            segments: best?.segments, rate: best?.rate ?? 0, rateMost: most,
            brief: self.rows.allSatisfy { $0.seconds < 1 })
    }
}
