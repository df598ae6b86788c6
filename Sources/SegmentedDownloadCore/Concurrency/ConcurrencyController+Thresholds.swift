/// The numbers by which the controller judges rates, and the reason for each.
extension ConcurrencyController {
    /// Doubling must raise the rate by this factor for the number to be doubled again.
    package static let gainMinimum = 1.15

    /// On a short path connections that raise the rate by less than this factor are given back at once: a new one soon
    /// has its full rate if that should be wrong.
    package static let keptGainMinimum = 1.05

    /// If connections together reach this fraction of the first one's rate times their number, only their number limits
    /// the rate.
    package static let linearMinimum = 0.9

    /// Connections that were closed did not help if they carried less than this fraction of an equal share.
    package static let helpMinimum = 0.5

    /// Later connections that reach this fraction of the bytes that the first one had at the same age do not slow each
    /// other down. Four that share the capacity of three stay below it.
    package static let unhinderedMinimum = 0.8

    /// If unhindered connections together stay below this fraction of the expected rate, the bytes arrive in bursts.
    package static let burstRate = 0.5

    /// The rate after giving connections back must stay above this fraction of the rate with all of them.
    package static let lossMaximum = 0.9

    /// On a short path connections that together stay below this fraction of their number times the best rate of one have
    /// reached the path's limit.
    package static let sharedMaximum = 0.7

    /// On a short path no more than this many times the first number are tried before the maximum: an origin whose limit is
    /// near is not met with the maximum at once. On a longer path another trial costs too much.
    package static let secondStep = 3

    /// Seconds. If a request takes less, a connection recovers from a lost packet within a tick.
    package static let shortRequestSeconds = 0.03

    /// Giving back fewer than one connection in this many is not tried: rates are not known more precisely than that.
    package static let returnMinimum = 8

    /// A rate below this fraction of the average is low.
    package static let fallMinimum = 0.75

    /// After this many consecutive low windows the fall is lasting.
    package static let lowCountMax = 2

    /// On a path at its limit, rates differ by at most this factor.
    package static let spreadMaximum = 1.1

    /// The shortest window for one number of connections. It is longer if a request's first byte takes long.
    package static let observationMinimum: Duration = .milliseconds(300)

    /// The window after growing from one connection, or on a short path: nearly two ticks, because connections start
    /// between ticks.
    package static let firstObservation: Duration = .milliseconds(150)

    /// Seconds. A comparison with the first connection is not awaited longer: its speed is known for two seconds only.
    package static let newcomerPatience = 1.0

    /// Half a tick, in seconds. A shorter time does not measure a rate.
    package static let spanMinimum = 0.05

    /// The first interval before more connections are tried again after a refusal, or after more did not help. It
    /// doubles.
    package static let patience: Duration = .seconds(10)

    /// How long the rate must be stable before fewer connections are tried.
    package static let steadiness: Duration = .seconds(2)

    /// Connections are added if the rest takes the first one this many times as long as they need to begin.
    package static let headsWorth = 2.0

    /// How long to wait for connections, or for twice as long as the fastest of them needed. Those that do not start within this
    /// time are prevented by another limit.
    package static let comingMaximum: Duration = .seconds(3)

    /// The number of connections tried first.
    ///
    /// A longer path needs more, because each takes longer to become fast and one lost packet costs it more. They are
    /// started together, because connections opened once the path is full lose a second to lost handshakes and leave
    /// slow start early.
    ///
    /// - Parameter requestCost: Seconds from a request to its first byte: two round trips, up to four with TLS.
    package static func firstTarget(requestCost: Double) -> Int {
        switch requestCost {
        case ..<0.03: 4
        case ..<0.09: 8
        case ..<0.16: 16
        default: 32
        }
    }

    /// Seconds. If a request takes as long as a tick, one connection receives almost nothing while it is observed.
    package static let longRequestSeconds = 0.09

    /// 32: few paths gain from more, and many origins refuse them. Only a path of 80 ms that loses one packet in a
    /// thousand needs this many for 200 Mbit/s.
    package static let automaticMaximum = 32
}
