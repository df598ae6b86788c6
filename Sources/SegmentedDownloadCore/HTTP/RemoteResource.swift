/// What identifies the bytes an origin serves: every response must agree on it before a byte of it is written.
package struct RemoteResource: Hashable, Sendable {
    /// The representation's length in bytes, absent if the origin does not say.
    package var completeLength: Int64?
    package var validator: Validator
    /// The content codings applied to the bytes, absent for none. Ranges count coded bytes (RFC 9110 §14.1.2).
    package var contentEncoding: String?
    /// Whether nothing but the end of its connection tells where the body ends (RFC 9112 §6.3): then nobody can tell that
    /// it is whole, and no validator vouches for the file.
    package var endsWithConnection: Bool

    package init(
        completeLength: Int64?, validator: Validator = .none, contentEncoding: String? = nil,
        endsWithConnection: Bool = false
    ) {
        self.endsWithConnection = endsWithConnection
        self.completeLength = completeLength
        self.validator = validator
        self.contentEncoding = contentEncoding
    }

    /// Whether another response can be proved to be of the same resource: by a strong tag or a modification date.
    package var isProvable: Bool {
        if case .same = self.validator.compare(with: self.validator) { return true }
        return false
    }

    /// The first way in which `current` is another resource than this one, as a clause for a message.
    ///
    /// - Parameter comparingValidators: false for the first answer of another source, which has validators of its own.
    package func difference(from current: RemoteResource, comparingValidators: Bool = true) -> String? {
        if let recorded = self.completeLength, let length = current.completeLength, recorded != length {
            return "its length was \(recorded) bytes and is now \(length) bytes"
        }
        if comparingValidators, case .changed = self.validator.compare(with: current.validator) {
            return "its validator was \(self.validator) and is now \(current.validator)"
        }
        // As bytes: to `String` some different texts are equal.
        if self.contentEncoding.map({ Array($0.utf8) }) != current.contentEncoding.map({ Array($0.utf8) }) {
            let recorded = self.contentEncoding ?? "none"
            return
                "its content encoding was \(recorded.printable) and is now \((current.contentEncoding ?? "none").printable)"
        }
        return nil
    }
}
