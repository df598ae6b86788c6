import SegmentedDownloadCore
import Testing

/// Downloads with an expected length, as a Metalink document states it.
@Suite("Expected lengths")
struct ExpectedLengthTests {
    private static let length: Int64 = 10 << 20

    private static func asking(hosts: [String] = ["host"], length: Int64 = length) -> Script {
        var script = Script { settings in
            settings.hosts = hosts
            settings.lengthExpected = length
        }
        script.tell(.surveyed(.nothing))
        _ = script.take()
        return script
    }

    @Test("A file of another length is refused before anything is prepared", arguments: [1, -1] as [Int64])
    func mismatch(by difference: Int64) {
        var script = Self.asking()
        script.accept(0, RemoteResource.tagged("\"a\"", length: Self.length + difference))
        #expect(script.failure?.code == .integrity)
        #expect(script.failure?.message.contains("\(Self.length + difference)") == true)
        #expect(script.failure?.message.contains("\(Self.length)") == true)
        #expect(!script.take().contains { $0.isPrepare })
    }

    @Test("A file of that length is fetched")
    func match() {
        var script = Self.asking()
        script.accept(0, RemoteResource.tagged("\"a\"", length: Self.length))
        script.tell(.prepared())
        script.complete(0)
        #expect(script.take().last?.isPlace == true)
    }

    @Test("An empty file fails where bytes are expected", arguments: [true, false])
    func empty(isRefusal: Bool) {
        var script = Self.asking()
        script.respond(0, isRefusal ? .unsatisfiable(completeLength: 0) : .whole(.tagged("\"a\"", length: 0)))
        #expect(script.failure?.code == .integrity)
    }

    @Test("A source whose file has another length is skipped")
    func passedOver() {
        var script = Self.asking(hosts: ["bad", "good"])
        script.accept(0, RemoteResource.tagged("\"a\"", length: 12))
        script.end(0, .stopped)
        #expect(script.failure == nil)
        script.wait(.milliseconds(100))
        #expect(script.orders.last?.source == SourceID(1))
        script.accept(1, RemoteResource.tagged("\"b\"", length: Self.length))
        #expect(script.take().contains { $0.isPrepare })
    }

    @Test("A stream without a length is checked at its end, and stopped past the expected length")
    func stream() {
        for (end, isLonger) in [(Self.length - 1, false), (Self.length, false), (Self.length, true)] {
            var script = Self.asking()
            script.respond(0, .whole(.tagged("\"a\"", length: nil)))
            script.tell(.prepared())
            #expect(script.take().last == .answer(LeaseID(0), .proceed(limit: Self.length)))
            script.progress(0, to: end)
            if isLonger { script.tell(.limitReached(LeaseID(0))) }
            script.end(0, isLonger ? .stopped : .finished)
            let isRight = end == Self.length && !isLonger
            #expect(script.take().contains { $0.isPlace } == isRight)
            if !isRight {
                script.tell(.checkpointed(bytes: end))
                #expect(script.failure?.code == .integrity)
            }
        }
    }

    @Test("A part that an earlier run completed is not placed if it has another length")
    func fetchedBefore() {
        var script = Script { $0.lengthExpected = Self.length + 1 }
        let resource = RemoteResource.tagged("\"a\"", length: Self.length)
        script.tell(.surveyed(.partial(SavedPartial(resource: resource, completeLength: Self.length, missing: []))))
        script.respond(0, .notModified())
        script.end(0, .stopped)
        script.tell(.prepared())
        script.tell(.checkpointed(bytes: Self.length))
        #expect(script.failure?.code == .integrity)
        #expect(!script.take().contains { $0.isPlace })
    }

    @Test("An existing file of another length is not accepted, even if the server confirms it")
    func existing() {
        var script = Script { $0.lengthExpected = Self.length + 1 }
        let record = RemoteResource.tagged("\"a\"", length: Self.length)
        script.tell(.surveyed(.existing(ExistingFile(length: Self.length, record: record, agreesWithDigests: nil))))
        #expect(script.failure?.code == .exists)
        #expect(script.orders.isEmpty)
    }
}
