/// The phase in which the first request determines what to fetch. That request also fetches the first segment.
struct Probing: Hashable, Sendable {
    /// The purpose of the first request.
    enum Purpose: Hashable {
        /// Fetch the file from its first byte.
        case fresh
        /// Resume the partial file of an earlier run.
        case resume(SavedPartial)
        /// All bytes are on disk. Ask whether they are still current before the part is treated as the file.
        case confirm(SavedPartial)
        /// Ask whether the finished file is still current.
        case compare(ExistingFile, RemoteResource)
        /// Ask whether the remote file is newer than a file of which nothing is recorded, or also whether it has
        /// another length.
        case compareDates(ExistingFile, comparesLength: Bool)
    }

    /// The decision on a response.
    enum Verdict: Hashable {
        /// The body may be fetched once the part file is ready.
        case accepted(RemoteResource, isSegmented: Bool, responseEnd: Int64)
        /// The resource is empty: nothing to fetch.
        case empty(RemoteResource)
        /// Ask again, in another way or after a delay.
        case again([DownloadAction])
        /// The file on disk is current, if it also matches these digests, which its record lacks.
        case current(stated: [ExpectedDigest])
        /// The remote file is not newer than the file on disk. The clause says why the file on disk stays.
        case notNewer(String)
        /// The resource has changed. The clause says how.
        case changed(String)
        /// The bytes on disk came from another resource. The clause says how its content differs. If that
        /// is not certain, it is absent and the bytes must be compared.
        case elsewhere(String?)
        case failed(DownloadError)
    }

    /// 16 KiB: different files hardly agree over this length by chance, and it costs almost nothing.
    static let overlap: Int64 = 16 << 10

    let purpose: Purpose
    /// Whether an older part, which belongs to another file, is kept until this download is complete.
    var setsAside = false
    /// The failure of the file of other sources, if it had the wrong digest and is fetched again. What was stated about it holds
    /// for these bytes, too.
    var mismatch: DownloadError?
    /// The source that is asked.
    let source: SourceID
    var lease: Lease?
    /// Whether the URL leads to another resource than that of the resumed part.
    var hasMoved = false
    /// What the accepted response states, without what was known before.
    private(set) var stated: RemoteResource?
    private var disagreement = Disagreement()
    private var sendsRange = true
    private var sendsIfRange = true
    var attempts = ProbeAttempts()

    init(_ purpose: Purpose, source: SourceID = .first, retryAt: Duration = .zero) {
        self.purpose = purpose
        self.source = source
        self.attempts.retryAt = retryAt
    }

    /// The partial file of an earlier run, if it is resumed or confirmed.
    var saved: SavedPartial? {
        switch self.purpose {
        case .resume(let saved), .confirm(let saved): saved
        case .fresh, .compare, .compareDates: nil
        }
    }

    /// Whether the resumed bytes came from another resource, so that their validators do not apply to this one.
    var isElsewhere: Bool { self.hasMoved || self.isOtherRequest }

    /// Whether the resumed bytes came from another requested URL, so that a difference means another file.
    private var isOtherRequest: Bool {
        guard let saved = self.saved else { return false }
        return saved.reference != self.source || saved.resource.locator == .unrecorded
    }

    /// Whether only a comparison of bytes can prove that the resource is that of the resumed part.
    private var needsComparison: Bool {
        guard case .resume(let saved) = self.purpose else { return false }
        return self.isElsewhere || !saved.resource.isProvable
    }

    /// Whether bytes on disk must be compared before the first missing byte can be written, because none precede it.
    var comparesFirst: Bool { self.needsComparison && self.writesFrom == 0 && self.saved?.bytesKept ?? 0 > 0 }

    /// Whether the request may be made to another source instead.
    var canMove: Bool {
        switch self.purpose {
        case .fresh, .resume: true
        case .confirm, .compare, .compareDates: false
        }
    }

    /// The offset of the first byte to write.
    var writesFrom: Int64 {
        switch self.purpose {
        case .fresh, .confirm, .compare, .compareDates: 0
        case .resume(let saved): saved.missing[0].lowerBound
        }
    }

    /// The number of bytes before a resumed segment that are compared. 0 if a validator proves that the resource is
    /// unchanged.
    var overlapLength: Int64 { self.needsComparison ? Self.overlap : 0 }

    private var request: RangeRequest {
        var request = self.requestForPurpose.avoidingNode(of: self.disagreement)
        // One answer is enough to compare a complete file, and the rest of one that is not may come in one stream.
        request.mayGetWhole = request.identity != nil
        return request
    }

    private var requestForPurpose: RangeRequest {
        switch self.purpose {
        case .fresh: return RangeRequest(isRanged: self.sendsRange)
        case .compare(_, let record):
            // A weak tag proves no byte, so it is not sent.
            return RangeRequest(
                lowerBound: 0, upperBound: 1, identity: record, sendsIfNoneMatch: record.validator.isStrong)
        case .compareDates(let file, let comparesLength):
            var request =
                self.sendsRange ? RangeRequest(lowerBound: 0, upperBound: 1) : RangeRequest(isRanged: false)
            // A 304 has no length, and a file that was cut off has a later date than the remote one.
            if !comparesLength { request.modifiedSince = file.modified }
            return request
        case .confirm(let saved):
            let validator = saved.resource.validator
            var request = RangeRequest(
                lowerBound: 0, upperBound: 1, identity: saved.resource, sendsIfNoneMatch: validator.isStrong)
            request.requiresProof = saved.resource.isProvable
            return request
        case .resume(let saved):
            let first = saved.missing[0]
            var request =
                self.sendsRange
                ? RangeRequest(
                    lowerBound: max(first.lowerBound - self.overlapLength, 0),
                    upperBound: first.upperBound == saved.completeLength ? nil : first.upperBound,
                    identity: saved.resource,
                    comparesValidator: !self.isElsewhere,
                    sendsIfRange: self.sendsIfRange && !self.isElsewhere)
                : RangeRequest(isRanged: false, identity: saved.resource, comparesValidator: !self.isElsewhere)
            // Nothing else compares the bytes of a part whose validator could prove them.
            request.requiresProof = self.overlapLength == 0
            return request
        }
    }

    /// The request to make, nil if none is due.
    mutating func nextFetch(in context: inout DownloadContext, now: Duration) -> FetchOrder? {
        guard self.lease == nil, now >= self.attempts.retryAt else { return nil }
        self.attempts.beganAt = self.attempts.beganAt ?? now
        // The manifest names another source. Until this one is proven equal, its claims are marked.
        let mark = self.isElsewhere ? self.source.mark : 0
        let order = FetchOrder(
            lease: context.makeLease(), source: self.source, segment: Segment.ID(0), request: self.request,
            writesFrom: self.writesFrom,
            limit: .max, mark: mark)
        self.lease = Lease(order: order, now: now)
        return order
    }

    mutating func responded(
        _ response: RangeResponse, in context: inout DownloadContext, now: Duration
    ) -> Verdict {
        let settings = context.settings
        self.attempts.hasContact = true
        self.lease?.wasAccepted = true
        self.lease?.progressAt = now
        switch response {
        case .partial(let range, let resource):
            switch self.purpose {
            case .compare(_, let record): return self.compared(record, resource, settings)
            case .compareDates(let file, let comparesLength):
                return self.comparedDates(file, resource, comparesLength: comparesLength)
            case .confirm(let saved): return self.compared(saved.resource, resource, settings)
            case .fresh, .resume: break
            }
            guard range.upperBound > self.writesFrom else {
                return self.ignoredRange(
                    "its answer ends before byte \(self.writesFrom), which was asked for", settings)
            }
            return self.accepted(resource, isSegmented: true, responseEnd: range.upperBound, settings, now: now)
        case .whole(let resource):
            return self.whole(resource, settings, now: now)
        case .notModified(let stated):
            if case .compareDates = self.purpose {
                return .notNewer("the remote file was not modified since the local one (304)")
            }
            return self.unmodified(settings, stated)
        case .unsatisfiable(let length):
            return self.unsatisfiable(length, settings: settings, now: now)
        case .changed(let difference):
            return self.differs(difference, now: now)
        case .moved(let difference):
            return .elsewhere(difference)
        case .ignoresRanges(let reason):
            return self.ignoredRange(reason, settings)
        // A part of a file cannot be taken from the whole file, which a server that does not support If-Range sends.
        case .malformed where self.leavesOutIfRange(): return .again([])
        case .redirected, .unauthorized, .rejected, .malformed:
            return .failed(response.failure(host: settings.hosts[self.source.rawValue]))
        case .refused:
            return self.failed(
                response.failure(host: settings.hosts[self.source.rawValue]), in: &context, now: now)
        }
    }

    /// Handles an unusable answer to a range: repeats the request once, without a range.
    private mutating func ignoredRange(_ reason: String, _ settings: DownloadSettings) -> Verdict {
        guard self.sendsRange else {
            return .failed(DownloadError(.protocol, "\(settings.hosts[self.source.rawValue]): \(reason)"))
        }
        self.sendsRange = false
        return .again([.report(.note("\(settings.hosts[self.source.rawValue]) does not support ranges: \(reason)"))])
    }

    private mutating func accepted(
        _ resource: RemoteResource, isSegmented: Bool, responseEnd: Int64, _ settings: DownloadSettings, now: Duration
    ) -> Verdict {
        self.stated = resource
        var resource = resource
        if let saved = self.saved { resource = resource.adding(saved.resource, isSamePlace: !self.isElsewhere) }
        if let difference = settings.difference(of: resource) {
            return self.differs(difference, now: now)
        }
        if let refusal = self.refusal(ofCodingOf: resource, settings) { return .failed(refusal) }
        if let length = resource.completeLength {
            if let mismatch = self.mismatch(ofLength: length, settings) { return .failed(mismatch) }
            guard length <= settings.lengthMaximum else {
                return .failed(
                    DownloadError(
                        .space, "the file is \(length) bytes long, more than the \(settings.lengthMaximum) allowed"))
            }
        }
        return .accepted(resource, isSegmented: isSegmented, responseEnd: responseEnd)
    }

    private func empty(_ resource: RemoteResource, _ settings: DownloadSettings) -> Verdict {
        self.mismatch(ofLength: 0, settings).map { .failed($0) } ?? .empty(resource)
    }

    private func mismatch(ofLength length: Int64, _ settings: DownloadSettings) -> DownloadError? {
        settings.mismatch(ofLength: length, from: settings.hosts[self.source.rawValue])
    }

    private func refusal(ofCodingOf resource: RemoteResource, _ settings: DownloadSettings) -> DownloadError? {
        settings.refusal(ofCodingOf: resource, from: settings.hosts[self.source.rawValue])
    }

    /// Handles a 304 to a request for what is on disk.
    private func unmodified(_ settings: DownloadSettings, _ stated: [ExpectedDigest]) -> Verdict {
        let known: RemoteResource? =
            switch self.purpose {
            case .compare(_, let record): record
            case .confirm(let saved), .resume(let saved): saved.resource
            case .fresh, .compareDates: nil
            }
        guard let known else { return .current(stated: stated) }
        return self.refusal(ofCodingOf: known, settings).map { .failed($0) }
            ?? .current(stated: known.digestsLacking(of: stated))
    }

    private func compared(
        _ record: RemoteResource, _ current: RemoteResource, _ settings: DownloadSettings
    ) -> Verdict {
        switch record.verdict(on: current) {
        case .same:
            self.refusal(ofCodingOf: current, settings).map { .failed($0) }
                ?? .current(stated: record.digestsLacking(of: current.ownDigests))
        case .changed(let difference): .changed(difference)
        case .unproven: .changed("the origin sends no validator that could confirm it")
        case .elsewhere(let difference): .elsewhere(difference)
        }
    }

    /// Decides by modification time, and by length if it is compared too.
    ///
    /// A server that ignores `If-Modified-Since`, or that answers 304 only to the date it sent, sends its file. As wget and curl
    /// do, its date is then compared here.
    private func comparedDates(
        _ file: ExistingFile, _ current: RemoteResource, comparesLength: Bool
    ) -> Verdict {
        guard let remote = current.validator.lastModified else {
            return .changed("the server does not say when its file was modified")
        }
        guard let local = file.modified, remote <= local else { return .changed("the remote file is newer") }
        guard comparesLength, let length = current.completeLength, length != file.length else {
            return .notNewer("the remote file is not newer than the local one")
        }
        return .changed("is newer than the remote file, but has \(file.length) bytes instead of \(length)")
    }

    private mutating func whole(
        _ resource: RemoteResource, _ settings: DownloadSettings, now: Duration
    ) -> Verdict {
        switch self.purpose {
        case .fresh: break
        case .compare(_, let record): return self.compared(record, resource, settings)
        case .compareDates(let file, let comparesLength):
            return self.comparedDates(file, resource, comparesLength: comparesLength)
        case .confirm(let saved): return self.compared(saved.resource, resource, settings)
        case .resume:
            // A 200 with the recorded tag means that the server does not support If-Range.
            if self.leavesOutIfRange() { return .again([]) }
        }
        if resource.completeLength == 0 { return self.empty(resource, settings) }
        return self.accepted(
            resource, isSegmented: false, responseEnd: resource.completeLength ?? settings.streamLengthMaximum,
            settings,
            now: now)
    }

    /// Has the request repeated without `If-Range`, if it had the field. The validator of the answer is compared instead.
    private mutating func leavesOutIfRange() -> Bool {
        guard case .resume(let saved) = self.purpose, self.sendsIfRange, self.sendsRange, !self.isElsewhere,
            saved.resource.validator.ifRangeFieldValue != nil
        else { return false }
        self.sendsIfRange = false
        return true
    }

    /// Handles an answer with other content than that on disk.
    private mutating func differs(_ difference: String, now: Duration) -> Verdict {
        guard !self.isOtherRequest else { return .elsewhere(difference) }
        if case .compareDates = self.purpose { return .changed(difference) }
        self.disagreement.note(difference)
        let isChange =
            if case .compare = self.purpose {
                self.disagreement.isChangeOfFinishedFile
            } else {
                self.disagreement.isChange
            }
        guard !isChange else { return .changed(difference) }
        self.attempts.retryAt = now + self.disagreement.delay()
        return .again([])
    }

    private mutating func unsatisfiable(_ length: Int64?, settings: DownloadSettings, now: Duration) -> Verdict {
        let failure = DownloadError(
            .protocol, "\(settings.hosts[self.source.rawValue]) answered 416 to a range that lies within the file",
            status: 416)
        switch self.purpose {
        case .fresh:
            if length == 0 { return self.empty(RemoteResource(completeLength: 0), settings) }
            guard self.sendsRange else { return .failed(failure) }
            self.sendsRange = false
            return .again([])
        case .compareDates:
            guard self.sendsRange else { return .failed(failure) }
            self.sendsRange = false
            return .again([])
        case .confirm(let saved) where length == 0 && saved.completeLength == 0:
            return .current(stated: [])
        case .resume(let saved), .confirm(let saved):
            guard let length, length != saved.completeLength else { return .failed(failure) }
            return self.differs("its length was \(saved.completeLength) bytes and is now \(length) bytes", now: now)
        case .compare(let file, _):
            guard length != 0 || file.length != 0 else { return .current(stated: []) }
            return self.differs("its length is now \(length ?? 0) bytes", now: now)
        }
    }

    /// Handles a fetch that failed or was refused before any bytes.
    mutating func failed(_ failure: DownloadError, in context: inout DownloadContext, now: Duration) -> Verdict {
        if failure.code == .changed { return .changed(failure.message) }
        // Other sources are asked before this one is asked again.
        guard context.settings.hosts.count == 1 || !self.canMove else { return .failed(failure) }
        let request = self.attempts.request(after: failure, isPaced: context.settings.isPaced, now: now)
        switch context.decision(on: request) {
        case .again(let delay, _):
            self.attempts.failures += 1
            self.attempts.retryAt = now + delay
            return .again([.report(.retrying(failure, attempt: self.attempts.failures, delay: delay))])
        case .fewerConnections(let delay):
            self.attempts.retryAt = now + delay
            return .again([.report(.retrying(failure, attempt: self.attempts.failures, delay: delay))])
        case .elsewhere, .leaveSource, .giveUp: return .failed(failure)
        }
    }

    /// The probe of another source, after the present one has failed.
    func moved(to source: SourceID, retryAt: Duration) -> Probing {
        var other = Probing(self.purpose, source: source, retryAt: retryAt)
        (other.setsAside, other.mismatch) = (self.setsAside, self.mismatch)
        other.attempts.beganAt = self.attempts.beganAt
        return other
    }
}
