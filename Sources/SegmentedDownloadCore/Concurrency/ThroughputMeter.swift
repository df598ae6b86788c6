/// Bytes per second over the last moments, from samples of a growing count.
package struct ThroughputMeter: Hashable, Sendable {
    private struct Sample: Hashable {
        var time: Duration
        var count: Int64
    }

    /// How far back a rate looks: long enough to smooth a sender's bursts, short enough to follow a change.
    package static let window: Duration = .seconds(2)

    /// A span shorter than this says nothing about a rate.
    package static let spanMinimum: Duration = .milliseconds(250)

    /// At the tick of 100 ms a window holds 20 samples; more are merged away.
    private static let samplesMax = 32

    private var samples: [Sample]

    package init(start: Duration, count: Int64 = 0) {
        self.samples = [Sample(time: start, count: count)]
    }

    /// Notes the count reached at `time`. Counts and times never go back.
    package mutating func record(_ count: Int64, at time: Duration) {
        guard let last = self.samples.last, time > last.time else { return }
        self.samples.append(Sample(time: time, count: max(count, last.count)))
        while self.samples.count > 2, time - self.samples[1].time >= Self.window {
            self.samples.removeFirst()
        }
        if self.samples.count > Self.samplesMax {
            self.samples.remove(at: self.samples.count - 2)
        }
    }

    /// What was counted at a time, between samples in proportion; absent if that is still to come or no longer kept.
    package func count(at time: Duration) -> Double? {
        guard let next = self.samples.firstIndex(where: { $0.time >= time }) else { return nil }
        let (later, place) = (self.samples[next], max(next - 1, 0))
        let earlier = self.samples[place]
        guard earlier.time < later.time else { return later.time == time ? Double(later.count) : nil }
        let part = (time - earlier.time) / (later.time - earlier.time)
        return Double(earlier.count) + part * Double(later.count - earlier.count)
    }

    /// Bytes per second within the window, absent while too little time has passed.
    package var rate: Double? {
        guard let first = self.samples.first, let last = self.samples.last else { return nil }
        let span = last.time - first.time
        guard span >= Self.spanMinimum else { return nil }
        return Double(last.count - first.count) / span.inSeconds
    }
}

extension Duration {
    /// The duration as seconds.
    package var inSeconds: Double {
        Double(self.components.seconds) + Double(self.components.attoseconds) * 1e-18
    }
}
