/// The part of a download in which its first request finds out what there is. That request is also the first segment's.
struct Probing: Hashable, Sendable {
    /// What the first request is for.
    enum Purpose: Hashable {
        /// Fetch from the start.
        case fresh
        /// Go on with what an earlier run left.
        case resume(SavedPartial)
        /// Everything is there already; ask whether it is still the resource before it is taken for it.
        case confirm(SavedPartial)
        /// Ask whether a finished file is still current.
        case compare(ExistingFile, RemoteResource)
    }

    /// What comes of a response.
    enum Verdict: Hashable {
        /// The body may be fetched once the part file is ready.
        case accepted(RemoteResource, isSegmented: Bool, responseEnd: Int64)
        /// The resource is empty: nothing to fetch.
        case empty(RemoteResource)
        /// Ask again, in another way or after a while.
        case again([DownloadAction])
        /// The destination's file is current.
        case current
        case changed(String)
        case failed(Failure)
    }

    /// 16 KiB: enough that two different files hardly agree by chance, little enough to cost nothing.
    static let overlap: Int64 = 16 << 10

    let purpose: Purpose
    /// Whether this download, begun anew, takes the place of an older part file.
    let replaces: Bool
    /// Who is asked.
    let source: SourceID
    var lease: Lease?
    private var sendsRange = true
    private var sendsIfRange = true
    private var failures = 0
    private var retryAt: Duration = .zero
    private var hasContact = false
    /// When it first asked.
    private var beganAt: Duration?

    init(_ purpose: Purpose, replaces: Bool, source: SourceID = .first, retryAt: Duration = .zero) {
        self.purpose = purpose
        self.replaces = replaces
        self.source = source
        self.retryAt = retryAt
    }

    /// What an earlier run left, if that is gone on with.
    var saved: SavedPartial? {
        switch self.purpose {
        case .resume(let saved), .confirm(let saved): saved
        case .fresh, .compare: nil
        }
    }

    /// Whether what is resumed was begun from another source: then its validators say nothing of this one's.
    var isElsewhere: Bool { self.saved.map { $0.reference != self.source } ?? false }

    /// Whether the same may be asked of another source.
    var canMove: Bool {
        switch self.purpose {
        case .fresh: true
        case .resume(let saved): saved.missing[0].lowerBound > 0
        case .confirm, .compare: false
        }
    }

    /// Where the first byte to write lies.
    var writesFrom: Int64 {
        switch self.purpose {
        case .fresh, .confirm, .compare: 0
        case .resume(let saved): saved.missing[0].lowerBound
        }
    }

    /// How many bytes before a resumed segment are compared, where no validator proves the resource unchanged.
    var overlapLength: Int64 {
        guard case .resume(let saved) = self.purpose else { return 0 }
        return saved.resource.isProvable && !self.isElsewhere ? 0 : Self.overlap
    }

    private var request: RangeRequest {
        switch self.purpose {
        case .fresh: return RangeRequest(isRanged: self.sendsRange)
        case .compare(_, let record):
            // A weak tag proves no byte, so nothing is asked by one.
            return RangeRequest(
                lowerBound: 0, upperBound: 1, identity: record, sendsIfNoneMatch: record.validator.isStrong)
        case .confirm(let saved):
            let validator = saved.resource.validator
            return RangeRequest(
                lowerBound: 0, upperBound: 1, identity: saved.resource, sendsIfNoneMatch: validator.isStrong)
        case .resume(let saved):
            guard self.sendsRange else {
                return RangeRequest(
                    isRanged: false, identity: saved.resource, comparesValidator: !self.isElsewhere)
            }
            let first = saved.missing[0]
            return RangeRequest(
                lowerBound: max(first.lowerBound - self.overlapLength, 0),
                upperBound: first.upperBound == saved.completeLength ? nil : first.upperBound,
                identity: saved.resource,
                comparesValidator: !self.isElsewhere,
                sendsIfRange: self.sendsIfRange && !self.isElsewhere
            )
        }
    }

    /// The request to make now, if it is time for one.
    mutating func nextFetch(id: LeaseID, now: Duration) -> FetchOrder? {
        guard self.lease == nil, now >= self.retryAt else { return nil }
        self.beganAt = self.beganAt ?? now
        // The manifest names another source until this one is proved the same: it is a stranger there.
        let mark = self.isElsewhere ? self.source.mark : 0
        let order = FetchOrder(
            lease: id, source: self.source, segment: Segment.ID(0), request: self.request, writesFrom: self.writesFrom,
            limit: .max, mark: mark)
        self.lease = Lease(order: order, now: now)
        return order
    }

    mutating func responded(
        _ response: RangeResponse, settings: DownloadSettings, now: Duration, using generator: inout SplitMix64
    ) -> Verdict {
        self.hasContact = true
        self.lease?.wasAccepted = true
        self.lease?.progressAt = now
        switch response {
        case .partial(let range, let resource):
            switch self.purpose {
            case .compare(_, let record): return self.compared(record, resource)
            case .confirm(let saved): return self.compared(saved.resource, resource)
            case .fresh, .resume: break
            }
            guard range.upperBound > self.writesFrom else {
                return self.ignoredRange(
                    "its answer ends before byte \(self.writesFrom), which was asked for", settings)
            }
            return self.accepted(resource, isSegmented: true, responseEnd: range.upperBound, settings)
        case .whole(let resource):
            return self.whole(resource, settings)
        case .notModified:
            return .current
        case .unsatisfiable(let length):
            return self.unsatisfiable(length, settings: settings)
        case .changed(let difference):
            return .changed(difference)
        case .ignoresRanges(let reason):
            return self.ignoredRange(reason, settings)
        case .redirected, .unauthorized, .rejected, .malformed:
            return .failed(response.failure(host: settings.hosts[self.source.rawValue]))
        case .refused:
            return self.failed(
                response.failure(host: settings.hosts[self.source.rawValue]), settings: settings, now: now,
                using: &generator)
        }
    }

    /// No usable answer to a range: asked once more, for the whole.
    private mutating func ignoredRange(_ reason: String, _ settings: DownloadSettings) -> Verdict {
        guard self.sendsRange else {
            return .failed(Failure(.protocol, "\(settings.hosts[self.source.rawValue]): \(reason)"))
        }
        self.sendsRange = false
        return .again([.report(.note("\(settings.hosts[self.source.rawValue]) does no ranges: \(reason)"))])
    }

    private func accepted(
        _ resource: RemoteResource, isSegmented: Bool, responseEnd: Int64, _ settings: DownloadSettings
    ) -> Verdict {
        if let length = resource.completeLength {
            if let mismatch = self.mismatch(ofLength: length, settings) { return .failed(mismatch) }
            guard length <= settings.lengthMaximum else {
                return .failed(
                    Failure(
                        .space, "the file is \(length) bytes long, more than the \(settings.lengthMaximum) allowed"))
            }
        }
        return .accepted(resource, isSegmented: isSegmented, responseEnd: responseEnd)
    }

    private func empty(_ resource: RemoteResource, _ settings: DownloadSettings) -> Verdict {
        self.mismatch(ofLength: 0, settings).map { .failed($0) } ?? .empty(resource)
    }

    private func mismatch(ofLength length: Int64, _ settings: DownloadSettings) -> Failure? {
        settings.mismatch(ofLength: length, from: settings.hosts[self.source.rawValue])
    }

    private func compared(_ record: RemoteResource, _ current: RemoteResource) -> Verdict {
        switch record.validator.compare(with: current.validator) {
        case .same: .current
        case .changed, .unproven: .changed("the origin offers nothing to compare what is there with")
        }
    }

    private mutating func whole(_ resource: RemoteResource, _ settings: DownloadSettings) -> Verdict {
        switch self.purpose {
        case .fresh: break
        case .compare(_, let record): return self.compared(record, resource)
        case .confirm(let saved): return self.compared(saved.resource, resource)
        case .resume(let saved):
            // A 200 with our own tag: this server dislikes If-Range. Asked without it, the answer is compared instead.
            if self.sendsIfRange, self.sendsRange, !self.isElsewhere, saved.resource.validator.ifRangeFieldValue != nil
            {
                self.sendsIfRange = false
                return .again([])
            }
        }
        if resource.completeLength == 0 { return self.empty(resource, settings) }
        return self.accepted(
            resource, isSegmented: false, responseEnd: resource.completeLength ?? settings.streamLengthMaximum, settings
        )
    }

    private mutating func unsatisfiable(_ length: Int64?, settings: DownloadSettings) -> Verdict {
        let failure = Failure(
            .protocol, "\(settings.hosts[self.source.rawValue]) answered 416 to a range that lies within the file",
            status: 416)
        switch self.purpose {
        case .fresh:
            if length == 0 { return self.empty(RemoteResource(completeLength: 0), settings) }
            guard self.sendsRange else { return .failed(failure) }
            self.sendsRange = false
            return .again([])
        case .confirm(let saved) where length == 0 && saved.completeLength == 0: return .current
        case .resume(let saved), .confirm(let saved):
            guard let length, length != saved.completeLength else { return .failed(failure) }
            return .changed("its length was \(saved.completeLength) bytes and is now \(length) bytes")
        case .compare(let file, _):
            return length == 0 && file.length == 0 ? .current : .changed("its length is now \(length ?? 0) bytes")
        }
    }

    /// The fetch ended, or was refused, before anything came of it.
    mutating func failed(
        _ failure: Failure, settings: DownloadSettings, now: Duration, using generator: inout SplitMix64
    ) -> Verdict {
        if failure.code == .changed { return .changed(failure.message) }
        self.failures += 1
        let policy = settings.retry
        // Where there are other sources, they are asked before this one is again.
        guard settings.hosts.count == 1 || !self.canMove,
            policy.allows(
                failure, failures: self.failures, hadContact: self.hasContact, waited: now - (self.beganAt ?? now))
        else {
            return .failed(failure)
        }
        let delay = policy.delay(afterFailures: self.failures, retryAfter: failure.retryAfter, using: &generator)
        self.retryAt = now + delay
        return .again([.report(.retrying(failure, attempt: self.failures, delay: delay))])
    }
}
