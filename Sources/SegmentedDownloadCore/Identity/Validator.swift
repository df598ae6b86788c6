/// The fields of a response that identify a version of the resource: `ETag` and `Last-Modified` (RFC 9110 §8.8).
///
/// The validator of the first response is recorded and compared with every later one, so that bytes of two versions are
/// never combined in one file. Values that do not parse are kept: equal ones prove nothing, different ones prove a
/// change.
package struct Validator: Hashable, Sendable {
    package let entityTag: EntityTag?
    package let lastModified: HTTPDate?
    /// The `ETag` fields, if they do not form exactly one valid entity tag.
    package let malformedTag: MalformedFields?
    /// The `Last-Modified` fields, if they do not form exactly one valid date.
    package let malformedDate: MalformedFields?

    package static let none = Validator(entityTag: nil, lastModified: nil)

    package init(
        entityTag: EntityTag?, lastModified: HTTPDate?, malformedTag: MalformedFields? = nil,
        malformedDate: MalformedFields? = nil
    ) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.malformedTag = malformedTag
        self.malformedDate = malformedDate
    }

    /// Parses the values of all `ETag` and `Last-Modified` fields of one response.
    package init(tagFields: [String], dateFields: [String]) {
        let tag = tagFields.count == 1 ? EntityTag(fieldValue: tagFields[0]) : nil
        let date = dateFields.count == 1 ? HTTPDate(fieldValue: dateFields[0]) : nil
        self.init(
            entityTag: tag, lastModified: date, malformedTag: tag == nil ? MalformedFields(tagFields) : nil,
            malformedDate: date == nil ? MalformedFields(dateFields) : nil)
    }

    /// Whether there is a strong entity tag. An equal one proves equal bytes.
    package var isStrong: Bool { self.strongEntityTag != nil }

    /// The value for `If-Range`: a strong entity tag, or nil.
    ///
    /// A weak tag must not be sent (RFC 9110 §13.1.5). A date is not sent either, because it is strong only under
    /// conditions on the origin's clock that one response cannot prove. Without `If-Range` the response's validator is
    /// still compared.
    package var ifRangeFieldValue: String? { self.strongEntityTag?.fieldValue }

    private var strongEntityTag: EntityTag? {
        self.entityTag.flatMap { $0.isWeak ? nil : $0 }
    }
}

extension Validator {
    /// The evidence that two responses are from the same version.
    package enum Proof: Hashable, Sendable {
        /// An equal strong entity tag, which proves equal bytes.
        case etag
        /// An equal date. Two versions within one second, the resolution of the date, are not distinguished.
        case lastModified
    }

    package enum Comparison: Hashable, Sendable {
        case same(Proof)
        case changed
        /// No field that could prove equality was recorded.
        case unproven
    }

    /// Compares with the validator of a later response from the same resource.
    ///
    /// A field that was recorded and is missing now means a change. So does a validator where none was recorded: an
    /// origin that sends one only sometimes could otherwise serve two versions that nothing distinguishes. A weak tag
    /// can prove a change but never equality. It does not equal a strong tag with the same text, because a
    /// representation transformed on its way is not the same file.
    package func compare(with current: Validator) -> Comparison {
        if self == .none, current != .none { return .changed }
        if self.entityTag != nil || self.malformedTag != nil {
            guard self.entityTag == current.entityTag, self.malformedTag == current.malformedTag else {
                return .changed
            }
            if self.isStrong { return .same(.etag) }
        }
        guard self.lastModified != nil || self.malformedDate != nil else { return .unproven }
        guard self.lastModified == current.lastModified, self.malformedDate == current.malformedDate else {
            return .changed
        }
        return self.lastModified == nil ? .unproven : .same(.lastModified)
    }
}

extension Validator: CustomStringConvertible {
    /// The fields that decide a comparison, for messages: `ETag "abc"`, `Last-Modified Tue, 14 Nov 2023 22:13:20 GMT`,
    /// both for a weak tag with a date, or `no validator`.
    package var description: String {
        var parts: [String] = []
        if let entityTag {
            parts.append("ETag \(entityTag.fieldValue.printable)")
        }
        if let malformedTag { parts.append("malformed ETag \(malformedTag)") }
        if let lastModified, !self.isStrong {
            parts.append("Last-Modified \(lastModified.fieldValue)")
        }
        if let malformedDate { parts.append("malformed Last-Modified \(malformedDate)") }
        return parts.isEmpty ? "no validator" : parts.joined(separator: ", ")
    }
}
