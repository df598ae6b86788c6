/// Everything that responses have stated about the bytes of a file. Every response must agree with it before any of its
/// bytes is written.
///
/// Statements are only added, and are stored wherever the bytes are: in the manifest, the record of a finished file and the
/// plan of a shared file. ``verdict(on:)`` judges a new response against them.
package struct RemoteResource: Hashable, Sendable {
    /// The length of the representation in bytes, absent if the origin does not send it.
    package var completeLength: Int64?
    /// The length of the file that the resource is a part of, in bytes; absent for a whole file, and if no response stated it.
    package var wholeLength: Int64?
    package var validator: Validator
    /// The content codings of the bytes, absent if there are none. Ranges count coded bytes (RFC 9110 §14.1.2).
    package var contentEncoding: String?
    /// Whether only the end of the connection delimits the body (RFC 9112 §6.3). A truncated body then looks complete,
    /// so no validator proves that the file is.
    package var endsWithConnection: Bool
    /// The resource's location, absent if only one resource exists.
    package var locator: ResourceLocator?
    /// The digests of the whole file that responses stated, in the order in which they were stated. A part of the file does not
    /// have them, see ``ownDigests``.
    package var digests: [ExpectedDigest] = []
    /// When the first response was sent, by its `Date`, or by the clock of this machine if it has none; absent in files of
    /// earlier versions. A file that was modified later is not the one that the bytes are from.
    package var begunAt: HTTPDate?
    /// What earlier responses from other places stated, before bytes were compared and found equal.
    package private(set) var elsewhere: [Elsewhere] = []

    /// What the responses of one place stated.
    package struct Elsewhere: Hashable, Sendable {
        package let locator: ResourceLocator
        package let validator: Validator

        package init(locator: ResourceLocator, validator: Validator) {
            self.locator = locator
            self.validator = validator
        }
    }

    package init(
        completeLength: Int64?, validator: Validator = .none, contentEncoding: String? = nil,
        endsWithConnection: Bool = false, locator: ResourceLocator? = nil, wholeLength: Int64? = nil
    ) {
        self.locator = locator
        self.endsWithConnection = endsWithConnection
        self.completeLength = completeLength
        self.wholeLength = wholeLength
        self.validator = validator
        self.contentEncoding = contentEncoding
    }

    /// Whether the resource has other bytes than the whole file.
    package var isPart: Bool { self.wholeLength != nil && self.wholeLength != self.completeLength }

    /// Those of the digests that the resource's bytes must have: none for a part of the file. There they show whether responses
    /// are of one version, see ``conflictInDigests``.
    package var ownDigests: [ExpectedDigest] { self.isPart ? [] : self.digests }

    /// Two stated digests of one algorithm, which no version of the file can both have; nil if there are none.
    package var conflictInDigests: (ExpectedDigest, ExpectedDigest)? {
        for (index, one) in self.digests.enumerated() {
            if let other = self.digests[index...].first(where: { $0.algorithm == one.algorithm && $0 != one }) {
                return (one, other)
            }
        }
        return nil
    }

    /// Whether a validator, a strong tag or a date, can prove that a later response is from the same version.
    package var isProvable: Bool {
        if case .same = self.validator.compare(with: self.validator) { return true }
        return false
    }

    // MARK: Adding statements

    /// 8: a URL that has led to more places has their statements compared with those of the last ones.
    package static let elsewhereMax = 8

    /// This resource, as a later response stated it, with what was stated before.
    ///
    /// - Parameter isSamePlace: Whether the validators of both identify versions of one resource. Otherwise those of the
    ///   earlier place are kept beside the new ones.
    package func adding(_ earlier: RemoteResource, isSamePlace: Bool) -> RemoteResource {
        var all = self
        all.elsewhere = earlier.elsewhere.filter { place in
            self.locator.map { place.locator.relation(to: $0) != .same } ?? true
        }
        if isSamePlace {
            all.validator = self.validator.combined(with: earlier.validator)
        } else if let locator = earlier.locator {
            all.elsewhere.append(Elsewhere(locator: locator, validator: earlier.validator))
        }
        all.elsewhere = all.elsewhere.suffix(Self.elsewhereMax)
        all.wholeLength = self.wholeLength ?? earlier.wholeLength
        all.digests = earlier.digests
        all.state(self.digests)
        all.begunAt = earlier.begunAt ?? self.begunAt
        return all
    }

    /// Adds digests of the whole file that a response stated, except those that are known.
    package mutating func state(_ digests: [ExpectedDigest]) {
        for digest in digests where !self.digests.contains(digest) { self.digests.append(digest) }
    }

    /// Those of the given digests for whose algorithms this resource has none, and with which its bytes can be compared.
    package func digestsLacking(of stated: [ExpectedDigest]) -> [ExpectedDigest] {
        self.isPart ? [] : stated.filter { digest in !self.digests.contains { $0.algorithm == digest.algorithm } }
    }

    /// Restores what was stored of other places.
    package mutating func restore(_ elsewhere: [Elsewhere]) {
        self.elsewhere = Array(elsewhere.suffix(Self.elsewhereMax))
    }
}
