/// A contiguous part of the resource that one connection fetches at a time.
package struct Segment: Hashable, Sendable {
    package struct ID: Hashable, Comparable, Sendable {
        package let rawValue: Int

        /// The segment of what is only compared: none of any plan.
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
    /// The next byte to be written: everything from `lowerBound` to here is on disk.
    package internal(set) var position: Int64
    /// The end of the segment, `Int64.max` while the complete length is unknown.
    package internal(set) var upperBound: Int64
    /// The lease under which it is being fetched.
    package internal(set) var lease: LeaseID?
    /// Failures in a row without a byte of progress.
    package internal(set) var failures = 0
    /// Not to be fetched again before this time.
    package internal(set) var retryAt: Duration = .zero

    package var isComplete: Bool { self.position >= self.upperBound }

    /// The bytes still to be written.
    package var remaining: Int64 { max(self.upperBound - self.position, 0) }
}

/// Names one attempt to fetch a segment over one connection; never reused within a download.
package struct LeaseID: Hashable, Comparable, Sendable {
    package let rawValue: Int

    package init(_ rawValue: Int) {
        self.rawValue = rawValue
    }

    package static func < (left: LeaseID, right: LeaseID) -> Bool {
        left.rawValue < right.rawValue
    }
}
