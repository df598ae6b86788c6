/// A contiguous part of the resource that one connection fetches at a time.
package struct Segment: Hashable, Sendable {
    package struct ID: Hashable, Comparable, Sendable {
        package let rawValue: Int

        /// The ID in orders that only compare bytes. No plan contains it.
        package static let none = ID(-1)

        package init(_ rawValue: Int) {
            self.rawValue = rawValue
        }

        package static func < (left: ID, right: ID) -> Bool {
            left.rawValue < right.rawValue
        }
    }

    package let id: ID
    /// The first byte of the segment.
    package let lowerBound: Int64
    /// The next byte to write. All bytes from `lowerBound` up to here are on disk.
    package internal(set) var position: Int64
    /// The end of the segment; `Int64.max` while the complete length is unknown.
    package internal(set) var upperBound: Int64
    /// The lease that fetches the segment, absent if none does.
    package internal(set) var lease: LeaseID?
    /// Consecutive failures without progress.
    package internal(set) var failures = 0
    /// The earliest time at which the segment is requested again.
    package internal(set) var retryAt: Duration = .zero

    package var isComplete: Bool { self.position >= self.upperBound }

    /// The number of bytes still to be written.
    package var remaining: Int64 { max(self.upperBound - self.position, 0) }
}

/// Identifies one attempt to fetch a segment over one connection. IDs are never reused within a download.
package struct LeaseID: Hashable, Comparable, Sendable {
    package let rawValue: Int

    package init(_ rawValue: Int) {
        self.rawValue = rawValue
    }

    package static func < (left: LeaseID, right: LeaseID) -> Bool {
        left.rawValue < right.rawValue
    }
}
