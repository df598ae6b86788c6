/// Storage events: surveying, preparing, checkpointing, placing, discarding.
extension DownloadStateMachine {
    package mutating func surveyed(_ survey: Survey, now: Duration) -> [DownloadAction] {
        guard case .surveying(let isRepeated) = self.state else { return [] }
        if let stop = self.takePendingStop() { return self.settled(stop) }
        switch survey {
        case .nothing:
            guard self.settings.continuation != .must || isRepeated else {
                return self.rest(
                    .failed(DownloadError(.state, "there is no partial download to resume", remedy: .allowStartingOver))
                )
            }
            self.state = .probing(Probing(.fresh, source: self.sources.firstAsked))
            return []
        case .partial(let saved):
            guard self.settings.continuation != .no || self.resumption.hasBegun, !self.resumption.mustBeginAnew else {
                self.state = .probing(Probing(.fresh, source: self.sources.firstAsked))
                return []
            }
            self.resumption.isPinned = saved.isPinned
            if saved.isRejected, !saved.hasDigests {
                guard self.settings.continuation != .must else {
                    return self.rest(
                        .failed(
                            DownloadError(
                                .integrity, "the partial file was complete once and did not match its digest",
                                remedy: .giveDigestOrStartOver)))
                }
                return self.settled(
                    .beginAnew("it did not match its digest, and no digest is given now"))
            }
            guard !saved.missing.isEmpty else {
                self.state = .probing(
                    Probing(
                        self.confirmation(of: saved),
                        source: saved.reference ?? self.sources.firstAsked))
                return []
            }
            let source = saved.reference.flatMap { self.sources[$0].isGone ? nil : $0 } ?? self.sources.firstAsked
            self.state = .probing(Probing(.resume(saved), source: source))
            return []
        case .existing(let file):
            return self.begin(with: file)
        }
    }

    /// The request that confirms a complete part before it is treated as the file. The URL may be another one, or may
    /// lead to another version.
    private func confirmation(of saved: SavedPartial) -> Probing.Purpose {
        guard
            !saved.resource.isProvable || saved.reference == nil || saved.resource.locator == .unrecorded
        else { return .confirm(saved) }
        return self.lastBlock(of: saved)
    }

    /// Requests the last block of a complete part again and compares the bytes before it, if no validator can confirm
    /// the part.
    func lastBlock(of saved: SavedPartial) -> Probing.Purpose {
        let tail = (saved.completeLength - 1) / BlockLayout.blockLength * BlockLayout.blockLength
        var cut = SavedPartial(
            resource: saved.resource, completeLength: saved.completeLength, missing: [tail..<saved.completeLength],
            reference: saved.reference, marked: saved.marked)
        cut.trustedEnd = tail
        return .resume(cut)
    }

    mutating func begin(with file: ExistingFile) -> [DownloadAction] {
        switch self.settings.ifExists {
        case .skip:
            if let failure = self.otherLength(of: file) { return self.rest(.failed(Self.exists(failure))) }
            guard file.isIdentified != false else {
                return self.rest(.failed(Self.exists(Self.otherDigest, remedy: .repairKeepBothOrReplace)))
            }
            return self.completed(file, by: .kept)
        case .fail: return self.rest(.failed(Self.exists("")))
        case .overwrite, .rename:
            self.state = .probing(Probing(.fresh, source: self.sources.firstAsked))
            return []
        case .verify, .update, .newer:
            if let difference = self.otherLength(of: file) { return self.outdated(difference) }
            switch (file.isIdentified, file.record) {
            case (true?, _): return self.completed(file, by: file.requirements.hasDigests ? .digests : .recorded)
            case (false?, _): return self.outdated(Self.otherDigest, remedy: .repairKeepBothOrReplace)
            case (nil, _) where file.otherRequest != nil:
                return self.outdated(" and was requested \(file.otherRequest ?? "")")
            case (nil, let record?) where record.completeLength == file.length:
                self.state = .probing(Probing(.compare(file, record)))
                return []
            case (nil, _):
                guard self.settings.ifExists == .verify else {
                    self.state = .probing(
                        Probing(.compareDates(file, comparesLength: self.settings.ifExists == .update)))
                    return []
                }
                return self.outdated(
                    " and nothing proves that it is the requested file", remedy: .adoptKeepBothOrReplace)
            }
        }
    }

    private static let otherDigest = " and does not match the digest"

    /// How the length of a file differs from the one that was given, as a clause for a message; nil if it does not.
    private func otherLength(of file: ExistingFile) -> String? {
        guard let expected = self.settings.lengthExpected, file.length != expected else { return nil }
        return " and has \(file.length) bytes, and should have \(expected)"
    }

    /// Rests with a file that was at the destination before.
    mutating func completed(_ file: ExistingFile, by proof: VerifiedFile.Proof) -> [DownloadAction] {
        do throws(DownloadError) {
            return self.rest(.completed(try file.judged(by: proof)))
        } catch {
            return self.rest(.failed(error))
        }
    }

    /// Surveys a file again to compare it with digests that an answer stated and its record lacks.
    mutating func compare(with stated: [ExpectedDigest]) -> [DownloadAction] {
        self.state = .surveying()
        return [.require(stated), .survey]
    }

    /// Handles that the file at the destination is not the remote one, or that nothing proves that it is.
    mutating func outdated(_ why: String, remedy: Remedy = .keepBothOrReplace) -> [DownloadAction] {
        guard self.settings.ifExists != .verify else { return self.rest(.failed(Self.exists(why, remedy: remedy))) }
        return self.replacing("the destination exists\(why)")
    }

    /// Replaces the file at the destination once the new one is complete.
    mutating func replacing(_ clause: String) -> [DownloadAction] {
        self.state = .surveying()
        return [
            .report(.note("\(clause); it is kept until the file is fetched, then replaced")), .replaceExisting, .survey,
        ]
    }

    static func exists(_ why: String, remedy: Remedy = .keepBothOrReplace) -> DownloadError {
        DownloadError(
            .exists, "the destination exists\(why)",
            remedy: remedy)
    }

    /// Handles that the part file is ready.
    ///
    /// - Parameters:
    ///   - window: The window of a consumer that takes the bytes in order, absent without one.
    ///   - hasDigest: Whether the complete file will be compared with a digest.
    package mutating func prepared(
        _ window: ReadingWindow? = nil, hasDigest: Bool = false, now: Duration
    ) -> [DownloadAction] {
        guard case .preparing(let preparing) = self.state else { return [] }
        // From now on the part on disk is from the accepted resource.
        (self.resumption.mustBeginAnew, self.resumption.hasBegun) = (false, true)
        let probing = preparing.probing
        if let stop = self.takePendingStop() {
            let leases = probing.lease.map { [$0.id] } ?? []
            return leases.map { .revoke($0) } + self.settle(stop, leases: leases, hasPart: true)
        }
        self.sources.define(preparing.resource, by: preparing.probing.source, preparing.written)
        // Bytes already passed to a reader cannot be compared with those of other sources.
        if window?.isStream == true { self.sources.dismissOthers() }
        var fetching = Fetching(
            self.context, plan: preparing.plan, isSegmented: preparing.isSegmented, overlap: probing.overlapLength,
            window: window, hasDigest: hasDigest, isElsewhere: probing.isElsewhere, now: now)
        var actions: [DownloadAction] = [
            .report(
                .started(
                    resource: preparing.resource, resumedFrom: preparing.plan.bytesDone,
                    segmented: preparing.isSegmented))
        ]
        if let lease = probing.lease {
            actions += fetching.adopt(lease, responseEnd: preparing.responseEnd, now: now)
        }
        self.checkpoints.begin(bytesDone: preparing.plan.bytesDone, now: now)
        self.state = .fetching(fetching)
        return actions + self.advanceFetching()
    }

    /// Handles a file found at the destination that the response named. The probe's body is not used.
    package mutating func found(_ survey: Survey, now: Duration) -> [DownloadAction] {
        guard case .preparing(let preparing) = self.state else { return [] }
        let leases = preparing.probing.lease.map { [$0.id] } ?? []
        // The waiting fetch ends by itself. Its end is ignored.
        let answers = leases.map { DownloadAction.answer($0, .stop) }
        self.state = .surveying()
        return answers + self.surveyed(survey, now: now)
    }

    package mutating func checkpointed(bytes: Int64) -> [DownloadAction] {
        [.report(.checkpointed(bytes: bytes))] + self.stepEnded()
    }

    /// Handles that untrusted bytes are withdrawn.
    package mutating func revised() -> [DownloadAction] {
        let actions = self.updateFetching { $0.revised() }
        return actions + self.stepEnded()
    }

    private mutating func stepEnded() -> [DownloadAction] {
        self.checkpoints.end()
        guard case .settling(let settling) = self.state, settling.leases.isEmpty, self.checkpoints.areDone else {
            return self.advanceFetching()
        }
        return self.settled(settling.stop)
    }

    package mutating func placed(_ file: VerifiedFile) -> [DownloadAction] {
        guard case .placing = self.state else { return [] }
        self.interruption.stop = nil
        return self.rest(.completed(file))
    }

    package mutating func discarded() -> [DownloadAction] {
        guard case .discarding = self.state else { return [] }
        return self.rest(.cancelled)
    }

    /// Handles a failed checkpoint. Claims that were not durable are withdrawn.
    package mutating func checkpointFailed(_ failure: DownloadError) -> [DownloadAction] {
        self.checkpoints.end()
        return self.storageFailed(failure)
    }

    /// Handles a failed storage step. Everything that was durable before still is.
    package mutating func storageFailed(_ failure: DownloadError) -> [DownloadAction] {
        switch self.state {
        case .surveying:
            if failure.code == .cancelled, let stop = self.takePendingStop() { return self.settled(stop) }
            return self.fail(failure)
        case .discarding:
            return self.fail(failure)
        case .preparing(let preparing):
            let answers = preparing.probing.lease.map { [DownloadAction.answer($0.id, .stop)] } ?? []
            return answers + self.fail(failure)
        case .placing(let before):
            // A pause that came too late does not hide an integrity failure.
            if failure.code == .cancelled, let stop = self.takePendingStop() {
                return self.settle(stop, leases: [], hasPart: true)
            }
            // The part of a short file is still in memory: what is to be kept of it is stored first.
            if case .cancel? = self.interruption.stop, let stop = self.takePendingStop() {
                return self.settle(stop, leases: [], hasPart: true)
            }
            if failure.code == .integrity, self.interruption.stop == nil,
                let actions = self.heal(failure) ?? before.flatMap({ self.fetchFromOneSource($0, after: failure) })
            {
                return actions
            }
            // The bytes are kept in any case, so that the download can be resumed.
            return self.settle(.fail(failure), leases: [], hasPart: true)
        case .fetching(let fetching):
            return self.leave(fetching, .fail(failure), hasPart: false)
        case .settling where failure.code == .cancelled:
            return []
        case .settling(var settling):
            if case .cancel = settling.stop {} else { settling.stop = .fail(failure) }
            self.state = .settling(Settling(leases: settling.leases, stop: settling.stop, hasPart: false))
            return self.checkSettled()
        case .queued, .probing, .resting:
            return []
        }
    }

    /// Surveys the part again after another process changed it, so that the missing bytes are fetched again.
    private mutating func heal(_ failure: DownloadError) -> [DownloadAction]? {
        guard failure.isTransient, self.healings < Self.healingsMax else { return nil }
        self.healings += 1
        self.state = .surveying(isRepeated: true)
        return [.report(.note("\(failure.message); what is missing is fetched again")), .survey]
    }

    /// Fetches the bytes of all other sources again from one source, if the digest of the complete file does not match.
    /// Each source is tried in turn: first those that have answered, of which some bytes may be kept.
    private mutating func fetchFromOneSource(
        _ before: Fetching, after mismatch: DownloadError
    ) -> [DownloadAction]? {
        guard before.proving.hasDigest, before.window?.isStream != true else { return nil }
        for source in [self.sources.reference] + self.sources.ids
        where !self.trusted.contains(source) && self.sources[source].resource != nil {
            self.trusted.append(source)
            var fetching = before
            guard let actions = fetching.trustOnly(source) else { continue }
            self.state = .fetching(fetching)
            return self.updateFetching { _ in actions }
        }
        self.sources.reinstate(besides: self.trusted)
        guard let next = self.sources.leastFailed else { return nil }
        return [.report(.note("the digest does not match; the file is fetched again from \(self.sources[next].host)"))]
            + self.settle(.beginWithOthers(mismatch), leases: [], hasPart: true)
    }

    /// Rests after a failed step. A cancellation that waited for the step is carried out; a pause is not distinguished
    /// from the failure.
    mutating func fail(_ failure: DownloadError) -> [DownloadAction] {
        guard let stop = self.takePendingStop(), case .cancel = stop else { return self.rest(.failed(failure)) }
        return self.settled(stop)
    }
}
