/// Finds how many connections one file deserves.
///
/// A fixed number is exact. Otherwise the number doubles while doubling pays, and stays where it stops paying.
package struct ConcurrencyController: Hashable, Sendable {
    /// Doubling must raise the rate by this factor to be followed by another doubling.
    package static let gainMinimum = 1.15

    /// How long one number is observed, at the least: slow start on an 80 ms path needs this long to show a rate.
    package static let observation: Duration = .milliseconds(600)

    /// Beyond this more connections annoy origins sooner than they help.
    package static let automaticMaximum = 16

    package private(set) var target: Int
    private var isAutomatic: Bool
    private var isSettled = false
    private var rateBefore: Double = 0
    private var observedSince: Duration?
    private var countAtStart: Int64 = 0

    package init(_ segments: DownloadSettings.Segments) {
        switch segments {
        case .automatic:
            self.target = 1
            self.isAutomatic = true
        case .exactly(let count):
            precondition(count > 0, "a file needs a connection")
            self.target = count
            self.isAutomatic = false
        }
    }

    /// Takes another wish of the user. Where the number is to be found, it is looked for from the present one.
    package mutating func update(_ segments: DownloadSettings.Segments) {
        switch segments {
        case .automatic:
            self.isAutomatic = true
            self.reopen()
        case .exactly(let count):
            precondition(count > 0, "a file needs a connection")
            self.target = count
            self.isAutomatic = false
        }
    }

    /// What more connections pay is to be found out once more, for what limited them has changed.
    package mutating func reopen() {
        self.isSettled = false
        self.rateBefore = 0
        self.observedSince = nil
    }

    /// Notes at a tick how many bytes have come in all, and over how many receiving connections.
    package mutating func observe(bytes: Int64, receiving: Int, now: Duration) {
        guard self.isAutomatic, !self.isSettled else { return }
        guard receiving >= self.target, let since = self.observedSince else {
            self.observedSince = receiving >= self.target ? now : nil
            self.countAtStart = bytes
            return
        }
        guard now - since >= Self.observation else { return }
        let rate = Double(bytes - self.countAtStart) / (now - since).inSeconds
        if rate >= self.rateBefore * Self.gainMinimum, self.target < Self.automaticMaximum {
            self.rateBefore = rate
            self.target *= 2
            self.observedSince = nil
        } else {
            self.isSettled = true
        }
    }
}
