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

        init(_ count: Int) {
            var limits = GroupStateMachine.Limits()
            limits.downloads = 5
            limits.shortDownloads = 16
            limits.connectionsPerHost = 64
            self.machine = GroupStateMachine(limits: limits)
            for number in 0..<count {
                var settings = DownloadSettings()
                settings.host = "host"
                settings.segments = .exactly(1)
                self.tell(.added(DownloadID(number), settings, seed: 1))
            }
        }

        mutating func tell(_ event: GroupEvent) {
            for action in self.machine.handle(event, now: .zero) {
                switch action {
                case .fetch(let id, let order): self.orders[id.rawValue] = order
                case .download(let id, .survey): self.tell(.download(id, .surveyed(.nothing)))
                case .download(let id, .prepare): self.tell(.download(id, .prepared()))
                case .download(let id, .revoke(let lease)):
                    self.orders[id.rawValue] = nil
                    self.tell(.download(id, .ended(lease, .stopped)))
                case .download(let id, .discard): self.tell(.download(id, .discarded))
                case .download, .post: break
                }
            }
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
        mutating func fail(_ number: Int) {
            guard let order = self.orders.removeValue(forKey: number) else { return }
            let end = LeaseEnd.failed(Failure(.network, "is not there"))
            self.tell(.download(DownloadID(number), .ended(order.lease, end)))
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

    @Test("Files of which nothing is fetched count as short ones, but not those that the user ends")
    func failed() {
        var group = Group(40)
        group.tell(.download(DownloadID(3), .pause))
        group.tell(.download(DownloadID(4), .cancel(keepingPartial: true)))
        #expect(group.asked == Array(0..<3) + [5, 6])
        group.fail(0)
        #expect(group.asked == [1, 2] + Array(5..<19))
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
