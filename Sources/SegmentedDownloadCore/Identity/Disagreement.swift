/// Answers with another validator than the one recorded, since the last answer with that one.
///
/// The nodes of a server farm may send different validators for the same bytes, such as tags made of inode numbers. So one
/// such answer is no change: the request is repeated on fresh connections until one reaches a node that sends the recorded
/// validator. It is a change once a bounded number of attempts has not seen that validator.
struct Disagreement: Hashable, Sendable {
    /// The different answers seen, to estimate how many nodes there are.
    private var differences: [String] = []
    private var count = 0

    /// 16 attempts for each version seen: of two nodes chosen at random, one is missed 32 times in a row once in 4 billion
    /// times, and one of three once in 400,000.
    static let attemptsPerVersion = 16

    /// A farm with more versions than this is not waited for.
    static let versionsMax = 16

    /// For a finished file one request usually suffices, and a wrong answer costs no more than a refusal.
    static let attemptsForFinishedFile = 8

    /// The first attempts follow at once, the later ones up to 100 ms apart.
    private static let delayStep: Duration = .milliseconds(5)
    private static let delayMaximum: Duration = .milliseconds(100)

    /// Where the recorded version is still being received, a node that sends it exists: it is asked for once a second.
    private static let delayWhileServed: Duration = .seconds(1)

    /// Whether another validator was the last to be seen.
    var isOpen: Bool { self.count > 0 }

    /// Whether this was the first answer of its kind.
    var isNew: Bool { self.count == 1 }

    /// Whether so many attempts have failed that the resource has changed.
    var isChange: Bool { self.count >= Self.attemptsPerVersion * (self.differences.count + 1) }

    /// As ``isChange``, for a file that is complete.
    var isChangeOfFinishedFile: Bool { self.count >= Self.attemptsForFinishedFile }

    /// How long to wait before the next attempt.
    var delay: Duration {
        self.isChange ? Self.delayWhileServed : min(Self.delayStep * (self.count - 1), Self.delayMaximum)
    }

    mutating func note(_ difference: String) {
        self.count += 1
        guard self.differences.count < Self.versionsMax, !self.differences.contains(difference) else { return }
        self.differences.append(difference)
    }

    /// The recorded validator was seen.
    mutating func resolve() {
        self.count = 0
    }
}
