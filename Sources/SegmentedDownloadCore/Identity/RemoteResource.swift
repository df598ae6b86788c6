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
    /// Where it came from; absent where only one resource exists.
    package var locator: ResourceLocator?

    package init(
        completeLength: Int64?, validator: Validator = .none, contentEncoding: String? = nil,
        endsWithConnection: Bool = false, locator: ResourceLocator? = nil
    ) {
        self.locator = locator
        self.endsWithConnection = endsWithConnection
        self.completeLength = completeLength
        self.validator = validator
        self.contentEncoding = contentEncoding
    }

    /// Whether a later response from the same resource can be proved to be of the same version: by a strong tag or a date.
    package var isProvable: Bool {
        if case .same = self.validator.compare(with: self.validator) { return true }
        return false
    }
}
