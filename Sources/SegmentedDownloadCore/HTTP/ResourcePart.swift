import HTTPTypes

/// A run of bytes of a resource that is downloaded as if it were a whole file.
///
/// The state machine, the manifest and the file on disk count from the part's first byte. Only the `Range` and
/// `Content-Range` fields count from the resource's. This type translates between both.
package struct ResourcePart: Hashable, Sendable {
    /// The first byte of the part, as an offset in the resource.
    package let lowerBound: Int64
    /// The end of the part; nil for the end of the resource.
    package let upperBound: Int64?

    package init(_ part: DownloadOptions.Part) {
        precondition(part.isValid, "a part begins at or after zero, and ends after it begins")
        self.lowerBound = part.first
        self.upperBound = part.last.map { $0 + 1 }
    }

    /// What distinguishes the part from the whole resource and from other parts in a ``ResourceName``. A URL without
    /// fragment cannot end with it.
    package var suffix: String { "#bytes=\(self.lowerBound)-\(self.upperBound.map { "\($0 - 1)" } ?? "")" }

    /// The value of the `Range` field for a request whose range counts from the part's first byte. Without a range, the
    /// request is for the whole part.
    package func fieldValue(for request: RangeRequest) -> String {
        let first = self.shifted(request.lowerBound)
        let end = request.upperBoundSent.map { self.shifted($0) } ?? .max
        let last = min(end, self.upperBound ?? .max)
        guard last < .max else { return "bytes=\(first)-" }
        // Bytes behind the part are not asked for knowingly. Their response would be refused.
        return "bytes=\(first)-\(max(last - 1, first))"
    }

    /// `offset`, counted from the resource's first byte.
    private func shifted(_ offset: Int64) -> Int64 {
        let (sum, overflow) = self.lowerBound.addingReportingOverflow(offset)
        return overflow ? .max - 1 : sum
    }

    /// The length of the part of a resource of this length; nil if it has no byte of the part.
    package func length(in completeLength: Int64) -> Int64? {
        let end = min(self.upperBound ?? .max, completeLength)
        return end > self.lowerBound ? end - self.lowerBound : nil
    }

    /// The `Content-Range` value, counted from the part's first byte. Nil if it is malformed, or if it has bytes before
    /// the part.
    fileprivate func contentRange(_ value: String) -> String? {
        guard case .satisfied(let range, let total) = ContentRange(fieldValue: value),
            range.lowerBound >= self.lowerBound
        else { return nil }
        let length = total.map { self.length(in: $0) }
        if case .some(nil) = length { return nil }
        let last = range.upperBound - 1 - self.lowerBound
        return "bytes \(range.lowerBound - self.lowerBound)-\(last)/\(length?.map { "\($0)" } ?? "*")"
    }
}

extension RangeResponse {
    /// Judges the head of the response to `request`, whose range counts from the first byte of `part`.
    ///
    /// A server that does not support ranges cannot send a part. So `ignoresRanges` and `whole` do not occur, and
    /// neither does `unsatisfiable`, which would mean that the file is empty.
    package init(request: RangeRequest, head: ResponseHead, locator: ResourceLocator?, part: ResourcePart) {
        switch head.status {
        case _ where head.isWhole:
            // With If-Range, 200 is the answer of a server whose file has changed.
            let whole = RangeResponse(request: request.withoutLength, head: head, locator: locator)
            if case .changed = whole {
                self = whole
            } else if case .moved = whole {
                self = whole
            } else {
                self = .malformed("a part of the file was requested, and the server sends the whole file")
            }
        case 206:
            var fields = head.fields
            guard let value = head.single(.contentRange), let shifted = part.contentRange(value) else {
                self = .malformed("a part of the file was requested, and the Content-Range is not of this part")
                return
            }
            fields[.contentRange] = shifted
            let response = RangeResponse(
                request: request, head: ResponseHead(status: 206, fields: fields, received: head.received),
                locator: locator)
            switch response {
            case .ignoresRanges(let why): self = .malformed(why)
            case .partial(let range, var resource):
                resource.wholeLength = ContentRange.completeLength(in: head)
                self = request.objection(to: resource) ?? .partial(range, resource)
            case .whole, .notModified, .unsatisfiable, .changed, .moved, .redirected, .refused, .unauthorized,
                .rejected,
                .malformed:
                self = response
            }
        case 304:
            // Its length is that of the whole resource.
            var fields = head.fields
            fields[.contentLength] = nil
            self.init(
                request: request, head: ResponseHead(status: 304, fields: fields, received: head.received),
                locator: locator)
        case 416:
            let length = head.single(.contentRange).flatMap { value -> Int64? in
                if case .unsatisfied(let length) = ContentRange(fieldValue: value) { length } else { nil }
            }
            let identity = request.identity
            if let length,
                identity?.completeLength.map({ part.length(in: length) != $0 }) == true
                    || identity?.wholeLength.map({ length != $0 }) == true
            {
                self = .changed("its length is now \(length) bytes")
            } else {
                let has = length.map { "it has \($0) bytes, and " } ?? ""
                self = .malformed("\(has)the requested part begins at byte \(part.lowerBound)")
            }
        default: self.init(request: request, head: head, locator: locator)
        }
    }
}

extension RangeRequest {
    /// The request without the length that the response must have.
    fileprivate var withoutLength: RangeRequest {
        var identity = self.identity
        identity?.completeLength = nil
        identity?.wholeLength = nil
        var request = RangeRequest(
            lowerBound: self.lowerBound, upperBound: self.upperBound, isRanged: self.isRanged, identity: identity,
            comparesValidator: self.comparesValidator, sendsIfRange: self.sendsIfRange,
            sendsIfNoneMatch: self.sendsIfNoneMatch)
        request.modifiedSince = self.modifiedSince
        request.confirms = self.confirms
        request.requiresProof = self.requiresProof
        return request
    }
}
