import SegmentedDownloadCore
import Testing

@Suite("Retry policy")
struct RetryPolicyTests {
    private static let policy = RetryPolicy()

    private static func delays(_ failures: Int, retryAfter: Duration? = nil) -> [Duration] {
        var generator = SplitMix64(seed: UInt64(failures))
        return (0..<500).map { _ in
            Self.policy.delay(afterFailures: failures, retryAfter: retryAfter, using: &generator)
        }
    }

    @Test("Full jitter: a delay between zero and a bound that doubles", arguments: 1...10)
    func jitter(failures: Int) {
        let bound = min(Self.policy.delayBase * (1 << (failures - 1)), Self.policy.delayMax)
        let delays = Self.delays(failures)
        #expect(delays.allSatisfy { .zero <= $0 && $0 <= bound })
        #expect(delays.contains { $0 < bound * 0.1 } && delays.contains { $0 > bound * 0.9 })
    }

    @Test("The delay stays bounded after any number of failures", arguments: [0, 17, 64, 1000, Int.max])
    func bounded(failures: Int) {
        #expect(Self.delays(failures).allSatisfy { $0 <= Self.policy.delayMax })
    }

    @Test("No attempt is made before the Retry-After of the origin")
    func retryAfter() {
        #expect(Self.delays(1, retryAfter: .seconds(40)).allSatisfy { $0 == .seconds(40) })
        #expect(Self.delays(9, retryAfter: .seconds(10)).allSatisfy { $0 >= .seconds(10) && $0 <= .seconds(30) })
    }

    @Test("The same seed gives the same delays")
    func replays() {
        #expect(Self.delays(5) == Self.delays(5))
    }

    @Test("The options replace the number of retries, also for the first contact, the delay and the time")
    func options() {
        var settings = DownloadSettings()
        #expect(settings.retry.retriesMax == Self.policy.retriesMax)
        #expect(settings.retry.firstContactRetriesMax == Self.policy.firstContactRetriesMax)
        settings.options.retries = 77
        settings.options.retryDelay = .seconds(3)
        settings.options.retryTime = .seconds(4)
        #expect(settings.retry.retriesMax == 77 && settings.retry.firstContactRetriesMax == 77)
        #expect(settings.retry.delayFixed == .seconds(3) && settings.retry.timeMax == .seconds(4))
    }
}
