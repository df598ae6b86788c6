/// How a host refuses one file of a job, to tell a host that is overloaded from a file that it never serves.
///
/// A refusal says which of them is at fault only together with other requests. The host serves others at the same time,
/// or serves the next one, another file, each time: then the file is at fault. It gets delays and attempts of its own,
/// and does not lower the pace of the others.
struct FileRefusals: Hashable, Sendable {
    /// 2: near its limit a host refuses one file and serves the next one too, but rarely the same file often.
    private static let suspicionsMax = 2

    /// 30: refusals of the file after which the patience of a job ends. A host near its limit also refuses one file and
    /// serves others by chance: with 10, as many as a process alone tries, one file of 6000 was given up in a simulation.
    private static let countMax = 30

    /// When it was last refused; zero if it was not since it was served.
    private(set) var lastAt: Duration = .zero
    /// The refusals for which the file is at fault.
    private var count = 0
    /// How often another file was served directly after this one was refused.
    private var suspicions = 0

    init() {}

    /// Whether the file has been refused so often that the host will not serve it.
    var isLasting: Bool { self.count > Self.countMax }

    /// Handles a refusal. Returns whether the file is at fault.
    mutating func note(servesOthers: Bool, now: Duration) -> Bool {
        self.lastAt = now
        let isOfFile = servesOthers || self.suspicions >= Self.suspicionsMax
        if isOfFile { self.count += 1 }
        return isOfFile
    }

    /// Handles that another file was served directly after the last refusal.
    mutating func noteOtherServed() { self.suspicions += 1 }
}
