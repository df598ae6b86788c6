/// Whether bytes of one representation may be combined with bytes of another in one file.
///
/// Proofs, strongest first: an equal digest of the whole file, which callers check; the same resource with an equal
/// validator; a comparison of bytes. Without one of them, bytes are not combined. Only ``RemoteResource/verdict(on:)``
/// makes this decision.
package enum IdentityVerdict: Hashable, Sendable {
    /// The same version of the same resource.
    case same(Validator.Proof)
    /// The same resource, but no validator identifies its version. The bytes must be compared.
    case unproven
    /// Another version of the same resource. The clause says how it differs.
    case changed(String)
    /// Another resource, so validators prove nothing. The clause says how the content differs. If that is
    /// not certain, it is absent and the bytes must be compared.
    case elsewhere(String?)
}

extension RemoteResource {
    /// Whether a response with the identity `current` contains bytes of this resource.
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

    /// Whether both have the same locator. Two resources without a locator, as in a simulation of one resource, are the
    /// same.
    package func isSameResource(as other: RemoteResource) -> Bool {
        switch (self.locator, other.locator) {
        case (nil, nil): true
        case (let left?, let right?): left.isSame(as: right)
        case (nil, _?), (_?, nil): false
        }
    }

    /// How the content of `current` differs in length or coding, as a clause for a message. Nil if it may be the same.
    package func differenceInContent(from current: RemoteResource) -> String? {
        if let recorded = self.completeLength, let length = current.completeLength, recorded != length {
            return "its length was \(recorded) bytes and is now \(length) bytes"
        }
        // Compares bytes, because `String` considers some different texts equal.
        guard self.contentEncoding.map({ Array($0.utf8) }) != current.contentEncoding.map({ Array($0.utf8) }) else {
            return nil
        }
        let (recorded, now) = (self.contentEncoding ?? "none", current.contentEncoding ?? "none")
        return "its content encoding was \(recorded.printable) and is now \(now.printable)"
    }
}
