import Testing

@testable import SegmentedDownloadCore

/// Who gives connections up where there are more than may be, or where another has too few for its weight.
@Suite("Sharing connections")
struct ConnectionSharingTests {
    private static let length: Int64 = 64 << 20

    /// Downloads that fetch, each with the connections it wants.
    private struct Group {
        var machine: GroupStateMachine
        var now: Duration = .zero
        var orders: [Int: [FetchOrder]] = [:]

        init(connections: Int, perHost: Int = 64) {
            self.machine = GroupStateMachine(limits: Self.limits(connections, perHost))
        }

        static func limits(_ connections: Int, _ perHost: Int = 64) -> GroupStateMachine.Limits {
            var limits = GroupStateMachine.Limits()
            limits.connections = connections
            limits.connectionsPerHost = perHost
            return limits
        }

        /// Adds a download and has its first response come.
        mutating func add(_ number: Int, wants count: Int, priority: Double = 0.5, host: String = "host") {
            self.begin(number, wants: count, priority: priority, host: host)
            self.accept(number)
            self.tell(.download(DownloadID(number), .prepared()))
            self.accept(number)
        }

        /// Adds a download that makes its first request as soon as it gets a connection.
        mutating func begin(_ number: Int, wants count: Int, priority: Double = 0.5, host: String = "host") {
            var settings = DownloadSettings()
            settings.segments = .exactly(count)
            settings.priority = priority
            settings.host = host
            let id = DownloadID(number)
            self.tell(.added(id, settings, seed: 1))
            self.tell(.download(id, .surveyed(.nothing)))
        }

        /// Tells something; returns the connections that are told to close.
        @discardableResult
        mutating func tell(_ event: GroupEvent) -> [Int: [LeaseID]] {
            var revoked: [Int: [LeaseID]] = [:]
            for action in self.machine.handle(event, now: self.now) {
                switch action {
                case .fetch(let id, let order): self.orders[id.rawValue, default: []].append(order)
                case .download(let id, .revoke(let lease)): revoked[id.rawValue, default: []].append(lease)
                case .download, .post: break
                }
            }
            return revoked
        }

        /// All requests of a download are answered with what they ask for.
        mutating func accept(_ number: Int) {
            for order in self.orders.removeValue(forKey: number) ?? [] {
                let range = ByteRange(
                    order.request.lowerBound..<(order.request.upperBound ?? ConnectionSharingTests.length))
                let response = RangeResponse.partial(range, .tagged("\"a\"", length: ConnectionSharingTests.length))
                self.tell(.download(DownloadID(number), .responded(order.lease, response, suggestedName: nil)))
            }
        }

        mutating func tick(after time: Duration) -> [Int: [LeaseID]] {
            self.now += time
            return self.tell(.tick)
        }

        /// Connections that are not being given up.
        func live(_ number: Int) -> Int {
            self.machine.holdings.count { $0.download == DownloadID(number) && !$0.isEnding }
        }
    }

    @Test("With fewer connections than there were, the one with most for its weight gives up, one at a time")
    func fewer() {
        var group = Group(connections: 4)
        group.add(0, wants: 1, priority: 0.2)
        group.add(1, wants: 3, priority: 1)
        #expect(group.live(0) == 1 && group.live(1) == 3)
        // It would still have two for its weight of one, and the other one nothing.
        let first = group.tell(.limits(Group.limits(3)))
        #expect(first.keys.sorted() == [1] && first[1]?.count == 1)
        let second = group.tell(.limits(Group.limits(2)))
        #expect(second.keys.sorted() == [1] && group.live(0) == 1 && group.live(1) == 1)
        // What is closing is not counted again.
        #expect(group.tick(after: .milliseconds(100)).isEmpty)
    }

    @Test("Only downloads with connections to a host give some up when its limit is lowered")
    func fewerPerHost() {
        var group = Group(connections: 20, perHost: 8)
        group.add(0, wants: 4, host: "a")
        group.add(1, wants: 3, host: "b")
        group.add(2, wants: 4, host: "a")
        let revoked = group.tell(.limits(Group.limits(20, 5)))
        #expect(revoked[1] == nil && group.live(1) == 3)
        #expect(group.live(0) + group.live(2) == 5)
        #expect(revoked.values.map(\.count).reduce(0, +) == 3)
    }

    @Test("A download that is to have fewer connections gives up as many at once")
    func ownNumber() {
        var group = Group(connections: 20)
        group.add(0, wants: 8)
        group.add(1, wants: 2)
        let revoked = group.tell(.segments(DownloadID(0), .exactly(3)))
        #expect(revoked[0]?.count == 5 && revoked[1] == nil && group.live(0) == 3)
    }

    @Test("One that is nearly done counts as given up though it is waited for")
    func nearlyDone() {
        var group = Group(connections: 4)
        group.add(0, wants: 4)
        let quarter = Self.length / 4
        group.now = .seconds(1)
        group.machine.observe(
            DownloadID(0),
            [
                LeaseObservation(
                    lease: LeaseID(0), position: quarter - 1000, bytesReceived: quarter - 1000, isWriting: false)
            ], now: group.now)
        #expect(group.tell(.limits(Group.limits(3))).isEmpty)
        #expect(group.live(0) == 3)
        #expect(group.tick(after: .milliseconds(100)).isEmpty && group.live(0) == 3)
    }

    @Test("A download with too few for its weight gets one from the one with most, until shares are even")
    func rebalances() {
        var group = Group(connections: 8)
        group.add(0, wants: 8)
        // Nothing is free, and the newcomer has nothing: a connection moves at once.
        group.begin(1, wants: 8)
        #expect(group.live(1) == 0)
        var moved: [LeaseID] = []
        for _ in 0..<100 {
            let revoked = group.tick(after: .milliseconds(100))
            #expect(revoked[1] == nil)
            for lease in revoked[0] ?? [] {
                moved.append(lease)
                group.tell(.download(DownloadID(0), .ended(lease, .revoked)))
            }
            group.accept(1)
            if group.machine.machine(DownloadID(1))?.plan == nil { group.tell(.download(DownloadID(1), .prepared())) }
        }
        #expect(moved.count == 4 && group.live(0) == 4 && group.live(1) == 4)
    }

    @Test("A download that is answered for the first time waits for no second connection")
    func probing() {
        var group = Group(connections: 8)
        group.add(0, wants: 7)
        group.begin(1, wants: 8)
        #expect(group.live(1) == 1)
        for _ in 0..<10 { #expect(group.tick(after: .milliseconds(500)).isEmpty) }
    }

    @Test("Of many connections an eighth moves at a tick, and all that are owed while something has just changed")
    func severalAtOnce() {
        var group = Group(connections: 32)
        group.add(0, wants: 32)
        group.add(1, wants: 32)
        var largest = 0
        for _ in 0..<20 {
            let revoked = group.tick(after: .milliseconds(100))
            largest = max(largest, revoked[0]?.count ?? 0)
            for lease in revoked[0] ?? [] { group.tell(.download(DownloadID(0), .ended(lease, .revoked))) }
            group.accept(1)
            if group.machine.machine(DownloadID(1))?.plan == nil { group.tell(.download(DownloadID(1), .prepared())) }
        }
        #expect(largest > 1 && largest <= 4)
        #expect(group.live(0) == 16 && group.live(1) == 16, "within two seconds")
    }

    @Test("A connection that is closing goes to one of two downloads without any, and another moves for the second")
    func closing() {
        var group = Group(connections: 8)
        group.add(0, wants: 8)
        for number in 1...2 { group.begin(number, wants: 8) }
        // At most one moves at a tick.
        for _ in 0..<2 {
            let revoked = group.tick(after: .milliseconds(100))
            #expect(revoked.keys.sorted() == [0] && revoked[0]?.count == 1)
        }
        #expect(group.tick(after: .milliseconds(100)).isEmpty && group.live(0) == 6)
    }

    @Test("If a host's limit is reached, only downloads with connections to that host give some up")
    func sameHost() {
        var group = Group(connections: 20, perHost: 6)
        // With the lower priority it has the most for its weight.
        group.add(0, wants: 6, priority: 0.2, host: "b")
        group.add(1, wants: 6, host: "a")
        group.begin(2, wants: 2, host: "a")
        #expect(group.live(0) == 6 && group.live(1) == 6 && group.live(2) == 0)
        let revoked = group.tick(after: .milliseconds(100))
        #expect(revoked.keys.sorted() == [1] && revoked[1]?.count == 1)
    }
}
