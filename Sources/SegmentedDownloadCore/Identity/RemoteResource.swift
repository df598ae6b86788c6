/// The identity of the bytes that an origin serves. Every response must match it before any of its bytes is written.
package struct RemoteResource: Hashable, Sendable {
    /// The length of the representation in bytes, absent if the origin does not send it.
    package var completeLength: Int64?
    package var validator: Validator
    /// The content codings of the bytes, absent if there are none. Ranges count coded bytes (RFC 9110 §14.1.2).
    package var contentEncoding: String?
    /// Whether only the end of the connection delimits the body (RFC 9112 §6.3). A truncated body then looks complete,
    /// so no validator proves that the file is.
    package var endsWithConnection: Bool
    /// The resource's location, absent if only one resource exists.
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

    /// Whether a validator, a strong tag or a date, can prove that a later response is from the same version.
    package var isProvable: Bool {
        if case .same = self.validator.compare(with: self.validator) { return true }
        return false
    }
}
