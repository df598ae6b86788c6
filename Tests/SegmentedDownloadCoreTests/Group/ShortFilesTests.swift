import SegmentedDownloadCore
import Testing

/// How many files are fetched at once while they are short.
@Suite("Short files at once")
struct ShortFilesTests {
    private static let shortLength: Int64 = 1 << 20
    private static let longLength: Int64 = shortLength + 1

    /// A group of many files at one host, whose lengths its responses show.
    private struct Group {
        private(set) var machine: GroupStateMachine
        private var orders: [Int: FetchOrder] = [:]

        private var now: Duration = .zero
        private(set) var revocations = 0

        init(_ count: Int, connectionsPerHost: Int = 64, segments: Int = 1, otherHostFrom other: Int = .max) {
            var limits = GroupStateMachine.Limits()
            limits.downloads = 5
            limits.shortDownloads = 16
            limits.connectionsPerHost = connectionsPerHost
            self.machine = GroupStateMachine(limits: limits)
            for number in 0..<count {
                var settings = DownloadSettings()
                settings.host = number < other ? "host" : "other"
                settings.segments = .exactly(segments)
                self.tell(.added(DownloadID(number), settings, seed: 1))
            }
        }

        mutating func tell(_ event: GroupEvent) {
            for action in self.machine.handle(event, now: self.now) {
                switch action {
                case .fetch(let id, let order): self.orders[id.rawValue] = order
                case .download(let id, .survey): self.tell(.download(id, .surveyed(.nothing)))
                case .download(let id, .prepare): self.tell(.download(id, .prepared()))
                case .download(let id, .revoke(let lease)):
                    self.revocations += 1
                    self.orders[id.rawValue] = nil
                    self.tell(.download(id, .ended(lease, .stopped)))
                case .download(let id, .discard): self.tell(.download(id, .discarded))
                case .download, .post: break
                }
            }
        }

        mutating func tick() {
            self.now += .milliseconds(100)
            self.tell(.tick)
        }

        /// The first response of a file comes.
        mutating func answer(_ number: Int, length: Int64?) {
            guard let order = self.orders.removeValue(forKey: number) else { return }
            let resource = RemoteResource.tagged("\"a\"", length: length)
            let response: RangeResponse =
                if let length { .partial(ByteRange(0..<length), resource) } else { .whole(resource) }
            self.tell(.download(DownloadID(number), .responded(order.lease, response, suggestedName: nil)))
        }

        /// A file is not there.
        mutating func fail(_ number: Int, isTransient: Bool = false) {
            guard let order = self.orders.removeValue(forKey: number) else { return }
            let end = LeaseEnd.failed(DownloadError(.network, "is not there", isTransient: isTransient))
            self.tell(.download(DownloadID(number), .ended(order.lease, end)))
        }

        /// The host refuses a file, and says when it may be asked again.
        mutating func refuse(_ number: Int) {
            guard let order = self.orders.removeValue(forKey: number) else { return }
            let id = DownloadID(number)
            let time = RetryAfter(fieldValue: "300", date: nil, fallbackNow: nil)
            let refusal = RangeResponse.refused(status: 429, retryAfter: time)
            self.tell(.download(id, .responded(order.lease, refusal, suggestedName: nil)))
            self.tell(.download(id, .ended(order.lease, .stopped)))
        }

        /// The files that wait for their first response.
        var asked: [Int] { self.orders.keys.sorted() }
    }

    @Test("Five files are asked for, and once one of them is short, sixteen are fetched at once")
    func short() {
        var group = Group(40)
        #expect(group.asked == Array(0..<5))
        group.answer(2, length: Self.shortLength)
        #expect(group.asked == [0, 1] + Array(3..<16))
        for number in group.asked { group.answer(number, length: 1) }
        #expect(group.asked.isEmpty)
        group.tell(.download(DownloadID(7), .cancel(keepingPartial: false)))
        #expect(group.asked == [16])
    }

    @Test("Files that are longer, or whose length no response shows, remain five", arguments: [Self.longLength, nil])
    func long(length: Int64?) {
        var group = Group(40)
        for number in 0..<5 { group.answer(number, length: length) }
        #expect(group.asked.isEmpty)
    }

    @Test("Beside four long files twelve short ones are fetched, and beside five none")
    func mixed() {
        for longCount in [4, 5] {
            var group = Group(40)
            for number in 0..<longCount { group.answer(number, length: Self.longLength) }
            if longCount == 4 { group.answer(4, length: Self.shortLength) }
            #expect(group.asked == (longCount == 4 ? Array(5..<16) : []))
        }
    }

    @Test("When long files follow short ones, none is started beyond those that are asked for already")
    func turned() {
        var group = Group(40)
        group.answer(0, length: Self.shortLength)
        for number in 1..<16 { group.answer(number, length: Self.longLength) }
        for number in 1..<11 {
            group.tell(.download(DownloadID(number), .cancel(keepingPartial: false)))
            #expect(group.asked.isEmpty, "\(number)")
        }
        group.tell(.download(DownloadID(11), .cancel(keepingPartial: false)))
        #expect(group.asked == [16])
    }

    @Test("Files that fail or are ended by the user show nothing about the others")
    func failed() {
        var group = Group(40)
        group.tell(.download(DownloadID(3), .pause))
        group.tell(.download(DownloadID(4), .cancel(keepingPartial: true)))
        #expect(group.asked == Array(0..<3) + [5, 6])
        group.fail(0)
        #expect(group.asked == [1, 2] + Array(5..<8))
    }

    @Test("Not more files are started than there may be connections to their host")
    func connections() {
        var group = Group(40, connectionsPerHost: 7)
        group.answer(0, length: Self.shortLength)
        #expect(group.asked == Array(1..<7))
        for number in group.asked { group.answer(number, length: 1) }
        #expect(group.asked.isEmpty && group.machine.machine(DownloadID(7))?.isQueued == true)
    }

    @Test("A connection is taken from no file for one that may not make its request")
    func blocked() {
        var group = Group(40, connectionsPerHost: 16, segments: 4)
        group.answer(0, length: Self.shortLength)
        for number in 1..<16 {
            group.answer(number, length: Self.longLength << 10)
            group.tick()
        }
        let revocations = group.revocations
        for _ in 0..<100 { group.tick() }
        #expect(group.revocations <= revocations + 16, "each gives up a connection once")
    }

    @Test("Files of another host are fetched while the first ones wait for theirs, which refused them")
    func closedHost() {
        var group = Group(30, connectionsPerHost: 8, otherHostFrom: 20)
        group.answer(0, length: Self.shortLength)
        #expect(group.asked == Array(1..<8))
        for number in group.asked { group.refuse(number) }
        #expect(!group.asked.isEmpty && group.asked.allSatisfy { $0 >= 20 }, "\(group.asked)")
    }

    @Test("A file whose first request failed makes its next one, also beside many long files")
    func retried() {
        var group = Group(40)
        group.answer(0, length: Self.shortLength)
        for number in 2..<16 { group.answer(number, length: Self.longLength) }
        group.fail(1, isTransient: true)
        for _ in 0..<50 { group.tick() }
        #expect(group.asked == [1])
    }

    @Test("A lower limit for short files has no effect")
    func lower() {
        var group = Group(40)
        var limits = GroupStateMachine.Limits()
        limits.downloads = 7
        limits.shortDownloads = 1
        group.tell(.limits(limits))
        #expect(group.asked == Array(0..<7))
        group.answer(0, length: Self.shortLength)
        #expect(group.asked == Array(1..<7))
    }
}
