import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// What the world does to a download, on real sockets and a real disk: every file in `Fixtures/Faults` is a case.
///
/// A failure names the case's file. `scripts/faults-table` makes the table of all of them.
@Suite(.timeLimit(.minutes(3))) struct FaultMatrixTests {
    /// Two processors serve so many at a time without one keeping the others waiting.
    private static let gate = Gate(places: 6)

    @Test("Whatever the world does: the right file, or a failure that says so", arguments: FaultCase.all(needing: nil))
    func world(_ fault: FaultCase) async throws { try await Self.play(fault) }

    @Test(
        "Whatever the disk does", .enabled(if: FaultyDisk.compiler != nil, "a disk that fails needs a C compiler"),
        arguments: FaultCase.all(needing: .compiler))
    func disk(_ fault: FaultCase) async throws { try await Self.play(fault) }

    @Test(
        "Whatever the file system does", .enabled(if: getuid() == 0, "a file system is mounted by root only"),
        arguments: FaultCase.all(needing: .root))
    func fileSystem(_ fault: FaultCase) async throws { try await Self.play(fault) }

    private static func play(_ fault: FaultCase) async throws {
        guard fault.patient != true else {
            try await FaultScene.play(fault)
            return
        }
        await Self.gate.enter()
        let result: Result<Void, any Error>
        do {
            if let reason = fault.known {
                await withKnownIssue("\(reason)") { try await FaultScene.play(fault) }
            } else {
                try await FaultScene.play(fault)
            }
            result = .success(())
        } catch {
            result = .failure(error)
        }
        await Self.gate.leave()
        try result.get()
    }
}

/// Lets so many in at a time, in order.
private actor Gate {
    private var places: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(places: Int) { self.places = places }

    func enter() async {
        guard self.places == 0 else {
            self.places -= 1
            return
        }
        await withCheckedContinuation { self.waiting.append($0) }
    }

    func leave() {
        guard !self.waiting.isEmpty else {
            self.places += 1
            return
        }
        self.waiting.removeFirst().resume()
    }
}
