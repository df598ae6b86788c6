/// Whether bytes of one representation may be combined with bytes of another in one file.
///
/// A new response supports the statements there are, contradicts them, or says nothing about them:
///
/// | the new response states | same place | same request, another query | another path of the origin | another origin | another request |
/// |---|---|---|---|---|---|
/// | another length, coding or digest | changed | changed | changed | changed | elsewhere, other file |
/// | another validator, or none any more | changed | changed | changed | nothing | other file if tag and date differ and the origin is the same |
/// | a date after the download began, not the recorded one | changed | changed | changed | changed | other file |
/// | an equal strong tag with another date | unproven | nothing | nothing | nothing | nothing |
/// | an equal strong tag and length | same | same | nothing | nothing | nothing |
/// | an equal date, or strong tag without length | same | nothing | nothing | nothing | nothing |
/// | no validator that could prove it | unproven | nothing | nothing | nothing | nothing |
///
/// Where a response says nothing, bytes are compared before its own are used. Contrary evidence is overruled only by a
/// digest of the whole file that the user gave, which callers check. Only ``RemoteResource/verdict(on:)`` makes this decision.
package enum IdentityVerdict: Hashable, Sendable {
    /// The same version of the same resource.
    case same(Validator.Proof)
    /// The same resource, but no validator identifies its version. The bytes must be compared.
    case unproven
    /// Another version of the requested resource. The clause says how it differs.
    case changed(String)
    /// Another place, whose validators prove nothing. The clause says how its file differs. If that is not certain, it is
    /// absent and the bytes must be compared.
    case elsewhere(String?)

    /// How the file certainly differs, as a clause for a message; nil if it may be the same.
    package var contradiction: String? {
        switch self {
        case .changed(let difference), .elsewhere(let difference?): difference
        case .same, .unproven, .elsewhere(nil): nil
        }
    }
}

extension RemoteResource {
    /// Whether a response with the identity `current` contains bytes of this resource.
    package func verdict(on current: RemoteResource) -> IdentityVerdict {
        let relation = self.relation(to: current)
        if let difference = self.differenceInContent(from: current) { return relation.other(difference) }
        for place in self.elsewhere {
            guard let locator = current.locator else { continue }
            if let difference = self.contradiction(
                of: place.validator, at: place.locator.relation(to: locator), by: current)
            {
                return relation.other(difference)
            }
        }
        if let difference = self.contradiction(of: self.validator, at: relation, by: current) {
            return relation.other(difference)
        }
        let comparison = self.validator.compare(with: current.validator)
        if relation == .otherQuery, comparison == .same(.etag), self.completeLength != nil,
            self.completeLength == current.completeLength
        {
            return .same(.etag)
        }
        guard relation == .same else { return .elsewhere(nil) }
        return switch comparison {
        case .same(let proof): .same(proof)
        case .changed: .changed(Self.difference(of: self.validator, current.validator))
        case .unproven: .unproven
        }
    }

    /// How the validators of a response contradict recorded ones of a place with this relation to its own.
    private func contradiction(
        of recorded: Validator, at relation: ResourceRelation, by current: RemoteResource
    ) -> String? {
        switch relation {
        case .same, .otherQuery, .sameOrigin, .unknown:
            return recorded.compare(with: current.validator) == .changed
                ? Self.difference(of: recorded, current.validator) : nil
        case .otherRequest(isSameOrigin: true) where recorded.differsEntirely(from: current.validator):
            return Self.difference(of: recorded, current.validator)
        case .otherOrigin, .otherRequest:
            // Tags of different servers say nothing about each other, and neither do dates of copies. A copy that is
            // younger than the download is no copy of what it began with.
            guard let begunAt, let date = current.validator.lastModified, date > begunAt, date != recorded.lastModified
            else { return nil }
            return "it was modified on \(date.fieldValue), after the download began"
        }
    }

    private static func difference(of recorded: Validator, _ current: Validator) -> String {
        "its validator was \(recorded) and is now \(current)"
    }

    private func relation(to other: RemoteResource) -> ResourceRelation {
        switch (self.locator, other.locator) {
        case (nil, nil): .same
        case (let left?, let right?): left.relation(to: right)
        // Nothing is known of a source that has not answered before.
        case (nil, _?), (_?, nil): .otherRequest(isSameOrigin: false)
        }
    }

    /// Whether both have the same locator. Two resources without a locator, as in a simulation of one resource, are the
    /// same.
    package func isSameResource(as other: RemoteResource) -> Bool { self.relation(to: other) == .same }

    /// How the content of `current` differs in length, coding or digest, as a clause for a message. Nil if it may be the
    /// same.
    package func differenceInContent(from current: RemoteResource) -> String? {
        if let recorded = self.completeLength, let length = current.completeLength, recorded != length {
            return "its length was \(recorded) bytes and is now \(length) bytes"
        }
        if let recorded = self.wholeLength, let length = current.wholeLength, recorded != length {
            return "the file's length was \(recorded) bytes and is now \(length) bytes"
        }
        if let difference = self.differenceInDigests(from: current.digests) { return difference }
        // Compares bytes, because `String` considers some different texts equal.
        guard self.contentEncoding.map({ Array($0.utf8) }) != current.contentEncoding.map({ Array($0.utf8) }) else {
            return nil
        }
        let (recorded, now) = (self.contentEncoding ?? "none", current.contentEncoding ?? "none")
        return "its content encoding was \(recorded.printable) and is now \(now.printable)"
    }

    /// How stated digests differ from the recorded ones of the same algorithm, as a clause for a message.
    package func differenceInDigests(from stated: [ExpectedDigest]) -> String? {
        for digest in stated {
            let recorded = self.digests.filter { $0.algorithm == digest.algorithm }
            guard let first = recorded.first, !recorded.contains(digest) else { continue }
            return "its \(digest.algorithm.rawValue) was \(first.hex) and is now \(digest.hex)"
        }
        return nil
    }
}

extension ResourceRelation {
    /// The verdict on a file that certainly differs.
    fileprivate func other(_ difference: String) -> IdentityVerdict {
        switch self {
        case .same, .otherQuery, .sameOrigin, .otherOrigin, .unknown: .changed(difference)
        case .otherRequest: .elsewhere(difference)
        }
    }
}
