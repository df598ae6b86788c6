import Foundation
import Testing

/// The matrix and its page in the documentation agree.
@Suite struct FaultTableTests {
    @Test("The page matches the cases; scripts/faults-table rewrites it")
    func upToDate() throws {
        let page = try FaultTable.page()
        if ProcessInfo.processInfo.environment["SEGDL_WRITE_FAULTS"] != nil {
            try Data(page.utf8).write(to: FaultTable.file)
        }
        let written = FileManager.default.contents(atPath: FaultTable.file.path)
        let isCurrent = written == Data(page.utf8)
        #expect(isCurrent, "run scripts/faults-table")
    }

    @Test("A row has a case, or is deferred with a reason, never both")
    func rows() throws {
        let deferred = try FaultTable.deferred()
        let played = Set(FaultCase.all.map(\.row))
        #expect(played.isDisjoint(with: deferred.keys))
        #expect(deferred.values.allSatisfy { !$0.reason.isEmpty })
    }
}
