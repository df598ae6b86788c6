/// What the scheduling of one download is told by its user.
package struct DownloadSettings: Hashable, Sendable {
    /// How many connections fetch one file.
    package enum Segments: Hashable, Sendable {
        /// As many as pay.
        case automatic
        /// Exactly so many, while that much work is left.
        case exactly(Int)
    }

    /// What to do about an interrupted download's remains.
    package enum Continuation: Hashable, Sendable { case auto, must, no }

    /// What to do when the remote resource is not the one begun with.
    package enum ChangePolicy: Hashable, Sendable { case fail, restart }

    /// What to do when the destination exists.
    package enum ExistingFilePolicy: Hashable, Sendable { case verify, skip, rename, overwrite, fail }

    package var segments: Segments = .automatic
    /// How many connections paid when something was last fetched from there: where the number is to be found, it begins with this one.
    package var connectionsKnown: Int?
    /// Above 0, up to 1: its share beside others is in proportion to it.
    package var priority = 0.5
    /// 1 MiB: below this a request costs more than it saves on a 50 ms path.
    package var splitLengthMinimum: Int64 = 1 << 20
    /// The least, in bytes, that a free connection takes from another: what is left at the end is worth smaller requests.
    package var stealLengthMinimum: Int64 = 16 << 10
    package var continuation: Continuation = .auto
    package var onChange: ChangePolicy = .fail
    package var ifExists: ExistingFilePolicy = .verify
    package var retry = RetryPolicy()
    /// A connection that receives nothing for so long is replaced. Time it spends waiting for our disk does not count.
    package var stallTimeout: Duration = .seconds(30)
    /// The whole response head must have arrived by then, however slowly it trickles, connecting included.
    package var headTimeout: Duration = .seconds(30)
    /// How long a run may take from the moment its turn comes until it has all bytes; absent for as long as it takes.
    package var timeLimit: Duration?
    /// The longest resource that is accepted, in bytes.
    package var lengthMaximum: Int64 = .max
    /// The length that the resource must have, in bytes; absent where any will do.
    package var lengthExpected: Int64?
    /// The sources' hosts, in order: who counts as one server for the connection budget.
    package var hosts: [String] = [""]
    /// Whether the file's digest is known beforehand: then it tells what samples of the sources cannot.
    package var hasDigests = false
    /// Whether it rests until it is resumed, like one that was paused.
    package var startsPaused = false

    /// The first source's host.
    package var host: String {
        get { self.hosts[0] }
        set { self.hosts = [newValue] }
    }

    package init() {}

    /// Where a body is broken off of which nobody says how long it is.
    var streamLengthMaximum: Int64 { min(self.lengthMaximum, self.lengthExpected ?? .max) }

    /// Why a resource of this length is another one than was asked for, if it is.
    func mismatch(ofLength length: Int64, from host: String) -> Failure? {
        guard let expected = self.lengthExpected, length != expected else { return nil }
        return Failure(.integrity, "\(host) has a file of \(length) bytes, and it should have \(expected)")
    }
}
