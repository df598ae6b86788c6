/// Counts the consecutive answers whose validator differs from the recorded one.
///
/// The nodes of a server farm may send different validators for the same bytes, such as tags made from inode numbers. A
/// single different answer is therefore not a change. The request is repeated on fresh connections until an answer has
/// the recorded validator. If a bounded number of attempts does not see it, the resource has changed.
struct Disagreement: Hashable, Sendable {
    /// The distinct differences seen. Their number estimates how many versions the nodes serve.
    private var differences: [String] = []
    private var count = 0

    /// 8 attempts for each version seen. Of two nodes chosen at random, 16 attempts miss one with a probability of 1 in 65,000; of
    /// three nodes, 24 attempts with 1 in 17,000. Behind a redirect each attempt is two requests.
    static let attemptsPerVersion = 8

    /// The largest number of distinct versions that is counted, which bounds the attempts.
    static let versionsMax = 16

    /// 8: a finished file usually needs only one request, and a wrong result only refuses to treat the file as current.
    static let attemptsForFinishedFile = 8

    /// 32: however many versions the nodes serve. Of four nodes chosen at random, as many attempts miss one with 1 in 10,000.
    static let attemptsAtEnd = 32

    /// 4: so many versions within seconds are those of a farm's nodes, or of a server that makes each answer anew.
    static let versionsOfMany = 4

    /// 4: bytes of another place can still be compared, which costs about as much as a few requests.
    static let attemptsForPlace = 4

    /// The second attempt follows at once, later ones at intervals that grow to 400 ms: a server that always answers with something
    /// else is asked a few times a second, also if each attempt is two requests.
    private static let delayStep: Duration = .milliseconds(50)
    private static let delayMaximum: Duration = .milliseconds(400)

    /// 4: of two nodes chosen at random, as many attempts in a row miss one with a probability of 1 in 16.
    private static let attemptsAtOnce = 4

    /// The interval while a connection still receives the recorded version. A node that sends it exists, so segdl keeps
    /// asking.
    private static let delayWhileServed: Duration = .seconds(1)

    /// Whether the last answer had a different validator.
    var isOpen: Bool { self.count > 0 }

    /// Whether this was the first different answer in a row.
    var isNew: Bool { self.count == 1 }

    /// Whether the next attempt is made without the cookies of earlier answers, by which load balancers choose the node. One of four
    /// has them, because some servers demand them.
    var mayDependOnSession: Bool { self.isOpen && !self.count.isMultiple(of: 4) }

    /// Whether the number of different answers is odd.
    var isEveryOther: Bool { !self.count.isMultiple(of: 2) }

    /// Whether the attempts are used up: the resource has changed.
    var isChange: Bool {
        self.count >= min(Self.attemptsPerVersion * (self.differences.count + 1), Self.attemptsAtEnd)
    }

    /// Like ``isChange``, for a file that is already complete.
    var isChangeOfFinishedFile: Bool { self.count >= Self.attemptsForFinishedFile }

    /// Like ``isChange``, for a file of which all bytes are there.
    var isChangeAtEnd: Bool { self.count >= Self.attemptsAtEnd }

    /// Whether so many versions were seen that none of them is the file's next one.
    var isAmongMany: Bool { self.differences.count >= Self.versionsOfMany }

    /// The difference that was seen last; nil if the last answer had the recorded validator.
    var latest: String? { self.isOpen ? self.differences.last : nil }

    /// Like ``isChange``, for a URL that leads to another place.
    var isMove: Bool { self.count >= Self.attemptsForPlace }

    /// The delay before the next attempt.
    ///
    /// - Parameter isServed: Whether a connection still receives the recorded version, so that there is time.
    func delay(isServed: Bool = false) -> Duration {
        self.isChange || isServed && self.count > Self.attemptsAtOnce
            ? Self.delayWhileServed : min(Self.delayStep * (self.count - 1), Self.delayMaximum)
    }

    mutating func note(_ difference: String) {
        self.count += 1
        guard self.differences.count < Self.versionsMax, !self.differences.contains(difference) else { return }
        self.differences.append(difference)
    }

    /// Resets the count: an answer had the recorded validator.
    mutating func resolve() {
        self.count = 0
    }
}
