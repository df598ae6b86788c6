/// The status of one segment, as ``Download/segments`` reports it.
public struct SegmentStatus: Codable, Hashable, Sendable {
    /// The state of a segment.
    public enum State: String, Codable, Hashable, Sendable, CaseIterable {
        /// All of it is written, by this run or an earlier one.
        case done
        /// A connection is fetching it, or has sent the request.
        case fetching
        /// No connection is fetching it. It waits for a free one.
        case waiting
        /// An attempt failed. It waits until it may be requested again.
        case retrying
    }

    /// The segment's number within the download, as in ``DownloadEvent/SegmentChange/segment``.
    public var segment: Int
    /// The offset of its first byte.
    public var start: Int64
    /// The offset of its first byte that is not written yet; equal to the end if all are.
    public var position: Int64
    /// The offset past its last byte; `nil` while the complete length is unknown.
    public var end: Int64?
    /// The segment's state.
    public var state: State
    /// The index of the source that it is fetched from: 0 is ``DownloadRequest/source``, 1 and up are
    /// ``DownloadRequest/mirrors`` without duplicates. `nil` unless the state is `fetching`.
    public var source: Int?

    /// Creates a segment status.
    public init(segment: Int, start: Int64, position: Int64, end: Int64?, state: State, source: Int? = nil) {
        self.segment = segment
        self.start = start
        self.position = position
        self.end = end
        self.state = state
        self.source = source
    }
}
