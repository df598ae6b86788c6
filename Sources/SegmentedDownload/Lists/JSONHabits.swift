import Synchronization

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Remembers the kinds of a document's values by their location, as hints for the decoder.
///
/// A decoder finds the kind of a value only by failing to decode it as another, which takes as long as decoding a
/// hundred values. The elements of a list mostly have the same kinds.
final class JSONHabits: Sendable {
    private struct Place: Hashable {
        var depth: Int
        /// `nil` for an element of an array.
        var key: String?
    }

    static let key = CodingUserInfoKey(rawValue: "segdl.habits")

    /// 1024: a list has fewer locations. Beyond that, hints are not stored.
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
