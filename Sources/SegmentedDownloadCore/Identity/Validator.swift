/// What a response says about which version of the resource it is from (RFC 9110 §8.8).
///
/// Recorded from the first response and compared with every later one: bytes of two versions never meet in one file.
/// Field values that do not parse are kept as they came: an equal one proves nothing, and a different one proves change.
package struct Validator: Hashable, Sendable {
    package let entityTag: EntityTag?
    package let lastModified: HTTPDate?
    /// The `ETag` fields, if they are not exactly one valid entity tag.
    package let malformedTag: MalformedFields?
    /// The `Last-Modified` fields, if they are not exactly one valid date.
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

    /// Reads the values of the `ETag` and `Last-Modified` fields of one response.
    package init(tagFields: [String], dateFields: [String]) {
        let tag = tagFields.count == 1 ? EntityTag(fieldValue: tagFields[0]) : nil
        let date = dateFields.count == 1 ? HTTPDate(fieldValue: dateFields[0]) : nil
        self.init(
            entityTag: tag, lastModified: date, malformedTag: tag == nil ? MalformedFields(tagFields) : nil,
            malformedDate: date == nil ? MalformedFields(dateFields) : nil)
    }

    /// Whether there is a strong entity tag: an equal one then proves equal bytes.
    package var isStrong: Bool { self.strongEntityTag != nil }

    /// What to send in `If-Range`: a strong entity tag, or nothing.
    ///
    /// A weak tag must not be sent (RFC 9110 §13.1.5). A date is not, because it is strong only under conditions about
    /// the origin's clock that one response cannot prove; without `If-Range` the answer is compared all the same.
    package var ifRangeFieldValue: String? { self.strongEntityTag?.fieldValue }

    private var strongEntityTag: EntityTag? {
        self.entityTag.flatMap { $0.isWeak ? nil : $0 }
    }
}

extension Validator {
    /// What makes two responses count as from one version.
    package enum Proof: Hashable, Sendable {
        /// An equal strong entity tag: the bytes are the same.
        case etag
        /// An equal date: nothing changed that the origin's clock could tell, which has a resolution of one second.
        case lastModified
    }

    package enum Comparison: Hashable, Sendable {
        case same(Proof)
        case changed
        /// Nothing was recorded that could tell.
        case unproven
    }

    /// Whether `current` is from the version that this was recorded from, both being of the same resource.
    ///
    /// What was there before and is missing now has changed, and so has what had no validator at all and has one now: an
    /// origin that gives one now and then would otherwise serve two versions that nothing tells apart. A weak tag can
    /// show a change, never sameness, and does not equal a strong one with the same text: a representation that was
    /// transformed on its way is not the file itself.
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
    /// What decides, fit for a message: `ETag "abc"`, or `Last-Modified Tue, 14 Nov 2023 22:13:20 GMT`, or both for a
    /// weak tag with a date, or `no validator`.
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
