import SegmentedDownloadCore
import Synchronization

/// Reads the bytes of an earlier run once and compares them with their claims, while the missing bytes are fetched.
///
/// The survey of a paused part reads nothing, so that the first request is made at once. A disk may have lost bytes
/// since the pause without any change of the file's times, and a digest whose state was resumed does not include them.
final class ReadBack: Sendable {
    private struct State {
        /// The claims that were not read yet, from the last to the first.
        var unread: [Claim]
        /// The claims whose bytes differ.
        var damaged: [Claim] = []
    }

    private let file: any StorageFile
    /// Locked while one claim is read. So the file is not closed meanwhile, and at the end no claim is left out.
    private let state: Mutex<State>

    init(_ claims: [Claim], of file: any StorageFile) {
        self.file = file
        self.state = Mutex(State(unread: claims.reversed()))
    }

    /// Reads until everything was read or the file is closed.
    ///
    /// An error is left to ``finish(unless:)``, which reads the same claim again.
    ///
    /// - Parameter report: Called at the first claim whose bytes differ.
    func run(_ report: () -> Void) async {
        var isReported = false
        while !Task.isCancelled, case .success(let read?) = self.readNext() {
            if !read.holds, !isReported {
                isReported = true
                report()
            }
            // Digests of other downloads share the thread.
            await Task.yield()
        }
    }

    /// Reads the rest.
    ///
    /// - Returns: The claims whose bytes were not as claimed when they were read.
    /// - Throws: ``DownloadError`` with code `cancelled` once interrupted.
    func finish(unless interruption: Latch) throws -> [Claim] {
        while try self.readNext().get() != nil {
            if interruption.isRaised { throw DownloadError(.cancelled, "verifying was interrupted") }
        }
        return self.state.withLock { $0.damaged }
    }

    /// Ends the reading. Afterwards the file may be closed.
    func close() {
        self.state.withLock { $0 = State(unread: []) }
    }

    /// Reads the next claim.
    ///
    /// - Returns: Whether its bytes are as claimed; `nil` if there is none.
    private func readNext() -> Result<(claim: Claim, holds: Bool)?, StorageError> {
        self.state.withLock { state in
            guard let claim = state.unread.last else { return .success(nil) }
            do throws(StorageError) {
                let holds = try self.file.holds(claim)
                state.unread.removeLast()
                if !holds { state.damaged.append(claim) }
                return .success((claim, holds))
            } catch {
                return .failure(error)
            }
        }
    }
}
