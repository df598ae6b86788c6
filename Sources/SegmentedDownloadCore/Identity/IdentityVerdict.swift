/// Whether the bytes of one representation may stand beside those of another.
///
/// The rule, strongest proof first: an equal digest of the whole file, which the callers check; the same resource with an
/// equal validator; a comparison of bytes; otherwise nothing. ``RemoteResource/verdict(on:)`` is the only place that
/// decides between them.
package enum IdentityVerdict: Hashable, Sendable {
    /// The same version of the same resource.
    case same(Validator.Proof)
    /// The same resource, and nothing tells its versions apart: the bytes must be compared.
    case unproven
    /// The same resource in another version. The clause says how it differs.
    case changed(String)
    /// Another resource: its validators prove nothing. The clause says how it differs, if that is known; otherwise the
    /// bytes must be compared.
    case elsewhere(String?)
}

extension RemoteResource {
    /// Whether a response with the identity `current` has bytes of this resource.
    package func verdict(on current: RemoteResource) -> IdentityVerdict {
        let difference = self.differenceInContent(from: current)
        guard self.isSameResource(as: current) else { return .elsewhere(difference) }
        if let difference { return .changed(difference) }
        return switch self.validator.compare(with: current.validator) {
        case .same(let proof): .same(proof)
        case .changed: .changed("its validator was \(self.validator) and is now \(current.validator)")
        case .unproven: .unproven
        }
    }

    /// Whether both came from the same place. Without names, as in a simulation of one resource, they do.
    package func isSameResource(as other: RemoteResource) -> Bool {
        switch (self.locator, other.locator) {
        case (nil, nil): true
        case (let left?, let right?): left.isSame(as: right)
        case (nil, _?), (_?, nil): false
        }
    }

    /// How the content of `current` differs for certain, as a clause for a message: its length or coding is another one.
    package func differenceInContent(from current: RemoteResource) -> String? {
        if let recorded = self.completeLength, let length = current.completeLength, recorded != length {
            return "its length was \(recorded) bytes and is now \(length) bytes"
        }
        // As bytes: to `String` some different texts are equal.
        guard self.contentEncoding.map({ Array($0.utf8) }) != current.contentEncoding.map({ Array($0.utf8) }) else {
            return nil
        }
        let (recorded, now) = (self.contentEncoding ?? "none", current.contentEncoding ?? "none")
        return "its content encoding was \(recorded.printable) and is now \(now.printable)"
    }
}
