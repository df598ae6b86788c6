import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#endif

/// Faults on real sockets and a real disk: every file in `Fixtures/Faults` is a case.
///
/// A failure names the case's file. `scripts/faults-table` writes the table of all cases.
struct FaultMatrixTests {
    @Test(
        "Network and server faults end with the right file, or with a failure that names the cause",
        arguments: FaultCase.all(needing: nil))
    func world(_ fault: FaultCase) async throws { try await Self.play(fault) }

    @Test(
        "Disk faults end with the right file, or with a failure that names the cause",
        .enabled(if: FaultyDisk.compiler != nil, "a failing disk needs a C compiler"),
        arguments: FaultCase.all(needing: .compiler))
    func disk(_ fault: FaultCase) async throws { try await Self.play(fault) }

    @Test(
        "File system faults end with the right file, or with a failure that names the cause",
        .enabled(if: getuid() == 0, "only root may mount a file system"),
        arguments: FaultCase.all(needing: .root))
    func fileSystem(_ fault: FaultCase) async throws { try await Self.play(fault) }

    private static func play(_ fault: FaultCase) async throws {
        try await TestPlaces.take(.processes, isPatient: fault.patient == true) {
            if let reason = fault.known {
                await withKnownIssue("\(reason)") { try await FaultScene.play(fault) }
            } else {
                try await FaultScene.play(fault)
            }
        }
    }
}
