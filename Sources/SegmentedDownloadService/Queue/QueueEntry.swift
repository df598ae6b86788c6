public import SegmentedDownload

/// A download in a ``DownloadQueue``, at one moment.
public struct QueueEntry: Hashable, Sendable, Identifiable {
    /// Sixteen lowercase hexadecimal digits, unique in all queues: an aria2 GID.
    public struct ID: RawRepresentable, Codable, Hashable, Sendable, CustomStringConvertible {
        package let number: UInt64

        package init(_ number: UInt64) { self.number = number }

        /// Nil unless the text has sixteen hexadecimal digits.
        public init?(rawValue: String) {
            guard rawValue.utf8.count == 16, rawValue.utf8.first != UInt8(ascii: "+"),
                let number = UInt64(rawValue, radix: 16)
            else { return nil }
            self.number = number
        }

        public var rawValue: String {
            let digits = String(self.number, radix: 16)
            return String(repeating: "0", count: 16 - digits.utf8.count) + digits
        }

        public var description: String { self.rawValue }

        /// The name of its download in the group, and in the manifest.
        var download: Download.ID { Download.ID(rawValue: self.rawValue) }
    }

    /// What becomes of an entry.
    public enum State: String, Codable, Hashable, Sendable, CaseIterable {
        /// It waits for its turn.
        case waiting
        /// It runs: see ``QueueEntry/progress``.
        case active
        /// It is paused.
        case paused
        /// It failed: see ``QueueEntry/error``.
        case failed
        /// It is being cancelled.
        case cancelling
    }

    public let id: ID
    public let state: State
    /// What to fetch and where to put it, without fields and credentials. The query of a URL may be secret.
    public let request: DownloadRequest
    /// The number of runs that failed.
    public let attempts: Int
    /// When it was added, in seconds since 1970.
    public let added: Int64
    /// Why it failed; nil in other states.
    public let error: DownloadError?
    /// The progress while it is active, and then the progress with which it came to rest; nil if it has not run since the
    /// queue began to run.
    public let progress: DownloadProgress?
}
