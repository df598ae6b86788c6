import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// What the world does to a download, on real sockets and a real disk: every file in `Fixtures/Faults` is a case.
///
/// A failure names the case's file. `scripts/faults-table` makes the table of all of them.
struct FaultMatrixTests {
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
        try await TestPlaces.take(isPatient: fault.patient == true) {
            if let reason = fault.known {
                await withKnownIssue("\(reason)") { try await FaultScene.play(fault) }
            } else {
                try await FaultScene.play(fault)
            }
        }
    }
}
