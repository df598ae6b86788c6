/// Where one segment of a file stood when ``Download/segments`` was asked for.
public struct SegmentStatus: Hashable, Sendable {
    /// What is being done about a segment.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// All of it is written, by this run or an earlier one.
        case done
        /// A connection is at it, or has asked for it.
        case fetching
        /// Nobody is at it: it waits for a connection that is free.
        case waiting
        /// Nobody is at it, for it was tried and failed: it waits until it may be asked for again.
        case retrying
    }

    /// Its number within the download, as in ``DownloadEvent/SegmentChange/segment``.
    public var segment: Int
    /// The offset of its first byte.
    public var start: Int64
    /// The offset of the first byte of it that is not written yet; its end if all are.
    public var position: Int64
    /// The offset past its last byte, absent while the file's length is unknown.
    public var end: Int64?
    /// What is being done about it.
    public var state: State
    /// The source that it is fetched from: 0 is ``DownloadRequest/source``, and from 1 on come the
    /// ``DownloadRequest/mirrors``, of which repeated ones do not count. Absent where nobody is at it.
    public var source: Int?

    /// A segment that stands so.
    public init(segment: Int, start: Int64, position: Int64, end: Int64?, state: State, source: Int? = nil) {
        self.segment = segment
        self.start = start
        self.position = position
        self.end = end
        self.state = state
        self.source = source
    }
}
