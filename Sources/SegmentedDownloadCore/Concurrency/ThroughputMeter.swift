/// Measures a recent rate in bytes per second from samples of a growing count.
package struct ThroughputMeter: Hashable, Sendable {
    private struct Sample: Hashable {
        var time: Duration
        var count: Int64
    }

    /// The period over which the rate is averaged: long enough to smooth a sender's bursts, short enough to follow a
    /// change.
    package static let window: Duration = .seconds(2)

    /// A shorter span does not measure a rate.
    package static let spanMinimum: Duration = .milliseconds(250)

    /// 32: a window holds 20 samples at a tick of 100 ms. If there are more, samples are dropped.
    private static let samplesMax = 32

    private var samples: [Sample]

    package init(start: Duration, count: Int64 = 0) {
        self.samples = [Sample(time: start, count: count)]
    }

    /// Records the count at `time`. Counts and times must not decrease; a sample that is not later is ignored.
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

    /// The interpolated count at a time. Absent if the time is in the future or no longer covered by samples.
    package func count(at time: Duration) -> Double? {
        guard let next = self.samples.firstIndex(where: { $0.time >= time }) else { return nil }
        let (later, place) = (self.samples[next], max(next - 1, 0))
        let earlier = self.samples[place]
        guard earlier.time < later.time else { return later.time == time ? Double(later.count) : nil }
        let part = (time - earlier.time) / (later.time - earlier.time)
        return Double(earlier.count) + part * Double(later.count - earlier.count)
    }

    /// Bytes per second over ``window``. Absent until ``spanMinimum`` has passed.
    package var rate: Double? {
        guard let first = self.samples.first, let last = self.samples.last else { return nil }
        let span = last.time - first.time
        guard span >= Self.spanMinimum else { return nil }
        return Double(last.count - first.count) / span.inSeconds
    }
}

extension Duration {
    /// The duration in seconds.
    package var inSeconds: Double {
        Double(self.components.seconds) + Double(self.components.attoseconds) * 1e-18
    }
}
