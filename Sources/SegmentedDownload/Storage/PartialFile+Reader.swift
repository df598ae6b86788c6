package import SegmentedDownloadCore
import Synchronization

/// The reader that takes the bytes in order while they are written, and what it means for the part if it writes them to
/// a descriptor.
extension PartialFile {
    /// The reader that takes the bytes in order; `nil` if there is none.
    var reader: InOrderReader? { self.state.withLock { $0.reader } }

    /// Replaces the reader.
    ///
    /// - Parameter make: Receives the claimed ranges and the digest states computed over them.
    func read(with make: ([Range<Int64>], [DigestState]) -> InOrderReader?) {
        // The log is locked until the reader is in place, which would miss a claim made meanwhile.
        let before = self.log.withLock { log in
            let reader = make(log.claims.map(\.range).merged(), log.digestStates)
            return self.state.withLock { state in
                defer { state.reader = reader }
                return state.reader
            }
        }
        before?.close()
    }

    /// Whether the claims of a response may be held back until its end. Not if the bytes go to a descriptor and exceed
    /// half of the window.
    func mayHold(_ response: RangeResponse) -> Bool {
        guard let window = self.reader?.window, window.isStream else { return true }
        return response.bodyEnd.map { $0 - response.bodyStart <= window.length / 2 } ?? false
    }

    /// Whether the part is a stream whose earlier bytes were written to the output, and a response has the same strong
    /// entity tag. The overlap then cannot be compared and need not be.
    package func isSame(asProvedBy response: RangeResponse) -> Bool {
        guard !self.storage.keepsFiles, let resource = response.resource,
            case .same(.etag) = self.header.resource.verdict(on: resource)
        else { return false }
        return true
    }
}
