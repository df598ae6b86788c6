import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What the values of a document were so far, by where they stand.
///
/// A decoder tells what a value is only by failing to read it as something else, which takes as long as reading a hundred
/// values. The elements of a list are mostly like the one before.
final class JSONHabits: Sendable {
    private struct Place: Hashable {
        var depth: Int
        /// Absent for an element of an array.
        var key: String?
    }

    static let key = CodingUserInfoKey(rawValue: "segdl.habits")

    /// More places than a list has; a document with more is none, and slow.
    private static let placesMax = 1024

    private let kinds = Mutex<[Place: JSONValue.Kind]>([:])

    func kind(at path: [any CodingKey]) -> JSONValue.Kind? {
        self.kinds.withLock { $0[Self.place(path)] }
    }

    func note(_ kind: JSONValue.Kind, at path: [any CodingKey]) {
        self.kinds.withLock { kinds in
            let place = Self.place(path)
            if kinds.count < Self.placesMax || kinds[place] != nil { kinds[place] = kind }
        }
    }

    private static func place(_ path: [any CodingKey]) -> Place {
        Place(depth: path.count, key: path.last.flatMap { $0.intValue == nil ? $0.stringValue : nil })
    }
}
