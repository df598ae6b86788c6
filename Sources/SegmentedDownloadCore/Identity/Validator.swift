/// The fields of a response that identify a version of the resource: `ETag` and `Last-Modified` (RFC 9110 §8.8).
///
/// The validator of the first response is recorded and compared with every later one, so that bytes of two versions are
/// never combined in one file. Values that do not parse are kept: equal ones prove nothing, different ones prove a
/// change.
package struct Validator: Hashable, Sendable {
    package let entityTag: EntityTag?
    package let lastModified: HTTPDate?
    /// Whether an equal date proves nothing, because the response was sent within two seconds of it.
    package let isDateWeak: Bool
    /// The `ETag` fields, if they do not form exactly one valid entity tag.
    package let malformedTag: MalformedFields?
    /// The `Last-Modified` fields, if they do not form exactly one valid date.
    package let malformedDate: MalformedFields?

    package static let none = Validator(entityTag: nil, lastModified: nil)

    package init(
        entityTag: EntityTag?, lastModified: HTTPDate?, malformedTag: MalformedFields? = nil,
        malformedDate: MalformedFields? = nil, isDateWeak: Bool = false
    ) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.isDateWeak = isDateWeak && lastModified != nil
        self.malformedTag = malformedTag
        self.malformedDate = malformedDate
    }

    /// Parses the values of all `ETag` and `Last-Modified` fields of one response.
    ///
    /// - Parameters:
    ///   - sent: The response's `Date`, absent if it has none.
    ///   - received: When the response was received, by the clock of this machine; absent in simulations.
    package init(tagFields: [String], dateFields: [String], sent: HTTPDate? = nil, received: HTTPDate? = nil) {
        let tag = tagFields.count == 1 ? EntityTag(fieldValue: tagFields[0]) : nil
        let date = dateFields.count == 1 ? HTTPDate(fieldValue: dateFields[0]) : nil
        self.init(
            entityTag: tag, lastModified: date, malformedTag: tag == nil ? MalformedFields(tagFields) : nil,
            malformedDate: date == nil ? MalformedFields(dateFields) : nil,
            isDateWeak: date.map { Self.isWeak($0, sent: sent, received: received) } ?? false)
    }

    /// 2: a file may be replaced within the second of its date without the date changing, so a date is strong only if
    /// the response was sent later (RFC 9110 §8.8.2.2). One more second covers file systems that stamp files with a
    /// clock some milliseconds behind, and those with dates of even seconds.
    static let strongAfter: Int64 = 2

    /// 60: the clocks of two machines may differ. A response without a `Date` was sent when it was received
    /// (RFC 9110 §6.6.1).
    static let strongAfterByOwnClock: Int64 = 60

    /// Whether the file may have been replaced after the response was sent, without the date changing.
    private static func isWeak(_ date: HTTPDate, sent: HTTPDate?, received: HTTPDate?) -> Bool {
        if let sent { return sent.seconds(since: date) < Self.strongAfter }
        if let received { return received.seconds(since: date) < Self.strongAfterByOwnClock }
        return false
    }

    /// The validator of a file that has bytes of two responses: of this one, and of an earlier one that it agrees with.
    /// If the earlier one had no strong date, the date does not identify the version of all bytes.
    package func combined(with earlier: Validator) -> Validator {
        Validator(
            entityTag: self.entityTag, lastModified: self.lastModified, malformedTag: self.malformedTag,
            malformedDate: self.malformedDate, isDateWeak: earlier.isDateWeak || earlier.lastModified == nil)
    }

    /// Whether there is a strong entity tag. An equal one proves equal bytes.
    package var isStrong: Bool { self.strongEntityTag != nil }

    /// Whether another validator in a later answer means that the file has changed. A date of the moment may be the clock of
    /// a server that makes each answer anew.
    package var showsChange: Bool {
        self.entityTag != nil || self.malformedTag != nil || self.lastModified != nil && !self.isDateWeak
    }

    /// Whether both have a tag, or neither, and the same for a date.
    func hasFields(of other: Validator) -> Bool {
        (self.entityTag == nil) == (other.entityTag == nil) && (self.lastModified == nil) == (other.lastModified == nil)
    }

    /// The value for `If-Range`: a strong entity tag, or nil.
    ///
    /// A weak tag must not be sent (RFC 9110 §13.1.5). A date is not sent either: servers compare it in
    /// different ways, and without `If-Range` the response's validator is still compared.
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
        /// An equal date, recorded from a response that was sent at least two seconds after it.
        case lastModified
    }

    package enum Comparison: Hashable, Sendable {
        case same(Proof)
        case changed
        /// No field that could prove equality was recorded, or fields contradict each other.
        case unproven
    }

    /// Compares with the validator of a later response from the same resource.
    ///
    /// A field that was recorded and is missing now means a change. So does a validator where none was recorded: an
    /// origin that sends one only sometimes could otherwise serve two versions that nothing distinguishes. A weak tag
    /// or a weak date can prove a change but never equality. A weak tag does not equal a strong tag with the same text, because a
    /// representation transformed on its way is not the same file. An equal strong tag with another date proves nothing: some
    /// servers make tags from the length alone (Apache's `FileETag Size`).
    package func compare(with current: Validator) -> Comparison {
        if self == .none, current != .none { return .changed }
        let hasOtherDate = self.lastModified != current.lastModified || self.malformedDate != current.malformedDate
        if self.entityTag != nil || self.malformedTag != nil {
            guard self.entityTag == current.entityTag, self.malformedTag == current.malformedTag else {
                return .changed
            }
            if self.isStrong { return hasOtherDate && self.hasDate && current.hasDate ? .unproven : .same(.etag) }
        }
        guard self.hasDate else { return .unproven }
        guard !hasOtherDate else { return .changed }
        return self.lastModified == nil || self.isDateWeak ? .unproven : .same(.lastModified)
    }

    /// Whether both have a tag and a date, and neither is equal. Of two URLs of one server, a copy has at least one of them.
    func differsEntirely(from other: Validator) -> Bool {
        guard let entityTag, let otherTag = other.entityTag, let lastModified, let otherDate = other.lastModified else {
            return false
        }
        return entityTag != otherTag && lastModified != otherDate
    }

    private var hasDate: Bool { self.lastModified != nil || self.malformedDate != nil }

    /// How the fields of a 304 differ from the recorded ones, as a clause for a message. It may omit any (RFC 9110 §15.4.5).
    package func difference(fromUnmodified current: Validator) -> String? {
        if current.entityTag != nil || current.malformedTag != nil {
            guard self.entityTag == current.entityTag, self.malformedTag == current.malformedTag else {
                return "its validator was \(self) and is now \(current)"
            }
        }
        guard current.hasDate, self.hasDate,
            self.lastModified != current.lastModified || self.malformedDate != current.malformedDate
        else { return nil }
        let (recorded, now) = (
            self.lastModified?.fieldValue ?? "malformed", current.lastModified?.fieldValue ?? "malformed"
        )
        return "its Last-Modified was \(recorded) and is now \(now)"
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
