import HTTPTypes
import SegmentedDownloadCore
import Synchronization

/// One download's request, and what its tasks share while it runs.
final class DownloadJob: Sendable {
    private struct Shared {
        var paths: DestinationPaths?
        /// What they are before any response.
        var firstPaths: DestinationPaths?
        /// Whether the destination's name is settled, or a response may still suggest another.
        var isNamed: Bool
        var part: PartialFile?
        var resource: RemoteResource?
        /// What the last response said it is, and the file's digest.
        var mediaType: String?
        var lastAnnounced: ExpectedDigest?
        /// The digest that the response said the file has which defined it.
        var announced: ExpectedDigest?
        var finished: Finisher.Result?
        /// Those the request has, and those the manifest of the same source holds the file to.
        var digests: [ExpectedDigest]
        /// Whether it was said that the part cannot be locked.
        var isNotedUnlocked = false
        var interruption = Latch()
        /// Who defines the resource.
        var reference = SourceID.first
        /// Whether a finished file at the destination is overlooked, and the one to be replaced.
        var replacesExisting = false
        var replaceable: StorageStatus?
        /// Whether parts of the file were only compared.
        var isCompared = false
        var progress = DownloadProgress()
        var state = DownloadState.queued
        var requests = 0
        var bytesFetched: Int64 = 0
        var connectionsPeak = 0
        var connectionsLearned: Int?

        /// All digests that the file must have. The server's own is not recorded: it tells it to every run. Where it could tell no
        /// more than the user does, it is not asked: it might only be wrong.
        var expected: [ExpectedDigest] {
            guard let announced,
                !self.digests.contains(where: { $0.algorithm.isTrusted(asMuchAs: announced.algorithm) })
            else { return self.digests }
            return self.digests + [announced]
        }
    }

    let id: DownloadID
    let request: DownloadRequest
    /// The ways to the sources, in their order.
    private let followers: [RedirectFollower]
    let broadcaster = EventBroadcaster()
    private let storage: any Storage
    /// Where the bytes are handed on to, if they are not kept.
    private let output: OutputDescriptor?
    private let naming: DestinationNaming
    /// What the downloads of the group have put in place.
    private let placed: PlacedFiles
    private let shared: Mutex<Shared>

    init(
        id: DownloadID, request: DownloadRequest, followers: [RedirectFollower], storage: any Storage,
        placed: PlacedFiles
    ) {
        self.placed = placed
        self.id = id
        self.request = request
        self.followers = followers
        self.output =
            if case .descriptor(let descriptor) = request.destination { OutputDescriptor(descriptor) } else { nil }
        self.storage = self.output == nil ? storage : StreamStorage()
        self.naming = DestinationNaming(
            request: request, id: request.id ?? Download.ID(rawValue: "\(id.rawValue)"), storage: self.storage)
        let isNamed = if case .directory = request.destination { false } else { true }
        self.shared = Mutex(Shared(isNamed: isNamed, digests: request.digests))
    }

    /// The way to a source.
    func follower(to source: SourceID) -> RedirectFollower { self.followers[source.rawValue] }

    /// Where the bytes come from, safe to show.
    var location: String {
        "\(self.followers[self.shared.withLock { $0.reference }.rawValue].current)"
    }

    /// A source as it was given, safe to show.
    func description(of source: SourceID) -> String { "\(self.request.sources[source.rawValue])" }

    /// The sources as they are recorded.
    private func recorded(_ reference: SourceID) -> [String] {
        self.request.sources.enumerated().map { index, source in
            RecordedSource(
                source.string, isReference: index > 0 && index == reference.rawValue,
                isForeign: self.request.foreignSources.contains(source)
            ).text
        }
    }

    // MARK: What others may know

    var part: PartialFile? { self.shared.withLock { $0.part } }
    var path: String { self.paths.destination }
    var progress: DownloadProgress { self.shared.withLock { $0.progress } }
    var state: DownloadState { self.shared.withLock { $0.state } }
    var finishedLength: Int64? { self.shared.withLock { $0.finished?.length } }
    var bytesFetched: Int64 { self.shared.withLock { $0.bytesFetched } }

    func update(state: DownloadState) {
        let isNew = self.shared.withLock { shared in
            defer { shared.state = state }
            return shared.state != state
        }
        if isNew { self.broadcaster.send(.state(state)) }
    }

    /// Has it look like one that was paused, before anybody watches.
    func rest(as progress: DownloadProgress) {
        self.shared.withLock { shared in
            shared.state = .paused
            shared.progress = progress
        }
        self.broadcaster.send(.paused(progress))
    }

    /// How many connections paid, if that was found.
    var connectionsLearned: Int? { self.shared.withLock { $0.connectionsLearned } }

    func learn(connections: Int) {
        self.shared.withLock { $0.connectionsLearned = connections }
    }

    func update(progress: DownloadProgress) {
        self.shared.withLock { $0.progress = progress }
    }

    func count(requests: Int = 0, bytesFetched: Int64 = 0, connections: Int = 0) {
        self.shared.withLock { shared in
            shared.requests += requests
            shared.bytesFetched += bytesFetched
            shared.connectionsPeak = max(shared.connectionsPeak, connections)
        }
    }

    /// The result once the download is in place.
    func result(duration: Duration, wasAlreadyComplete: Bool) -> DownloadResult {
        self.shared.withLock { shared in
            DownloadResult(
                path: shared.paths?.destination ?? "", bytes: shared.finished?.length ?? shared.progress.bytesDone,
                bytesFetched: shared.bytesFetched, requests: shared.requests, connectionsPeak: shared.connectionsPeak,
                duration: duration, crc32: shared.finished?.crc.hex,
                digests: shared.expected + (shared.finished?.computed(besides: shared.expected) ?? []),
                verifiedBy: wasAlreadyComplete && self.request.ifExists == .skip
                    ? .none
                    : self.verification(
                        shared.resource, hasDigests: !shared.expected.isEmpty, isCompared: shared.isCompared),
                wasAlreadyComplete: wasAlreadyComplete)
        }
    }

    private func verification(
        _ resource: RemoteResource?, hasDigests: Bool, isCompared: Bool
    ) -> DownloadResult.Verification {
        if hasDigests { return .digest }
        if isCompared { return .comparison }
        guard let resource, !resource.endsWithConnection else { return .none }
        let validator = resource.validator
        guard case .same(let proof) = validator.compare(with: validator) else {
            return .none
        }
        switch proof {
        case .etag: return .etag
        case .lastModified: return .lastModified
        }
    }

    // MARK: Steps on disk

    /// Looks at the destination.
    func survey() async throws -> Surveyor.Finding {
        // A part that was found changed while it was written is still open, and locked by us.
        self.close()
        var (paths, finding) = try await self.surveyChosen(from: self.firstPaths)
        self.shared.withLock { shared in
            shared.paths = paths
            shared.part = finding.part
            // Remains of an earlier run fix the name: that is the file to go on with.
            if finding.survey != .nothing { shared.isNamed = true }
            if case .partial(var saved) = finding.survey, let header = finding.part?.header {
                self.inherit(header, into: &shared)
                saved.hasDigests = !shared.digests.isEmpty
                let known = Set(header.digests)
                saved.isPinned = !known.isEmpty && known.isSubset(of: shared.digests.map(\.description))
                finding.survey = .partial(saved)
            }
            if case .existing(let file) = finding.survey {
                shared.resource = file.record
                shared.progress.bytesDone = file.length
                shared.progress.bytesTotal = file.length
            }
        }
        return finding
    }

    /// Looks at the destination; where the policy is to rename, at the first name that no file has and no process fetches for.
    ///
    /// - Parameter passesPartials: whether names with an interrupted download are passed over, too.
    private func surveyChosen(
        from first: DestinationPaths, passesPartials: Bool = false
    ) async throws -> (DestinationPaths, Surveyor.Finding) {
        var number = 0
        while true {
            let paths: DestinationPaths
            (paths, number) = try self.naming.chosenPaths(from: first, number: number)
            do {
                let finding = try await self.survey(paths)
                if finding.isUnlocked { self.noteUnlocked(paths) }
                switch finding.survey {
                // Another process may have placed its file since the name was chosen.
                case .existing where self.request.ifExists == .rename: break
                case .partial where passesPartials: finding.part?.close()
                case .existing, .partial, .nothing: return (paths, finding)
                }
            } catch let failure as Failure where failure.code == .exists && self.request.ifExists == .rename {
                // Another process has that name's part.
            }
            number += 1
        }
    }

    /// Says once that nothing keeps another process from the part.
    private func noteUnlocked(_ paths: DestinationPaths) {
        let isFirst = self.shared.withLock { shared in
            defer { shared.isNotedUnlocked = true }
            return !shared.isNotedUnlocked
        }
        guard isFirst else { return }
        self.broadcaster.send(
            .note(
                "the file system of \(paths.part.printable) has no locks: "
                    + "fetch this file with one process at a time"))
    }

    /// From now on a finished file at the destination is overlooked, and replaced in the end.
    func replaceExisting() {
        self.shared.withLock { $0.replacesExisting = true }
    }

    private var replacesExisting: Bool { self.shared.withLock { $0.replacesExisting } }

    /// Looks at a destination, and clears away what a crash after its last step left beside it, or brought back.
    private func survey(_ paths: DestinationPaths) async throws -> Surveyor.Finding {
        try self.storage.removeAbandonedClaim(paths)
        try self.removeSecondName(paths)
        if self.replacesExisting {
            let found = try self.storage.status(of: paths.destination)
            if let found, self.placed.contains(found) {
                throw Failure(
                    .exists, "another URL of this run has the same file name, \(paths.destination.printable)",
                    hint: "Keep both with --if-exists rename, or choose another name with -o")
            }
            self.shared.withLock { $0.replaceable = found }
        }
        let finding = try self.surveyor.survey(
            paths, policy: self.replacesExisting ? .overwrite : self.request.settings.ifExists)
        guard case .existing(let file) = finding.survey, try self.storage.status(of: paths.part) == nil else {
            return finding
        }
        let hasManifest = try self.storage.hasManifest(paths)
        // Whoever placed the file may not have come to see its new name become durable.
        if hasManifest || file.record != nil { try await self.storage.synchronize(directory: paths.directory) }
        // Meanwhile another process may have begun to replace it.
        if hasManifest, try self.storage.status(of: paths.part) == nil {
            try self.storage.removeSetAside(of: paths)
            try self.storage.removeManifests(paths)
        }
        return finding
    }

    /// Where the last step was a hard link, a crash after it left the finished file with the part's name too.
    private func removeSecondName(_ paths: DestinationPaths) throws {
        guard let part = try self.storage.status(of: paths.part), part.kind == .file,
            try self.storage.status(of: paths.destination)?.isSameFile(as: part) == true
        else { return }
        try self.storage.remove(paths.part)
    }

    /// A download that is gone on with is held to the digests it was begun with, unless the request names others.
    private func inherit(_ header: Manifest.Header, into shared: inout Shared) {
        let text = self.request.source.resourceText
        guard header.recordedSources.contains(where: { RecordedSource.resourceText(of: $0.url) == text }),
            self.request.continuation != .no
        else { return }
        for digest in header.digests.compactMap({ ExpectedDigest($0) })
        where !shared.digests.contains(where: { $0.algorithm == digest.algorithm }) {
            shared.digests.append(digest)
        }
    }

    private var surveyor: Surveyor {
        Surveyor(
            storage: self.storage, digests: self.request.digests, sources: self.request.sources)
    }

    /// The destination as far as it is known.
    private var paths: DestinationPaths { self.shared.withLock { $0.paths } ?? self.firstPaths }

    /// The destination as far as it is known without a response.
    private var firstPaths: DestinationPaths {
        if let known = self.shared.withLock({ $0.firstPaths }) { return known }
        let paths = self.naming.paths
        self.shared.withLock { $0.firstPaths = paths }
        return paths
    }

    /// Whether the destination's name is settled.
    var hasName: Bool { self.shared.withLock { $0.isNamed } }

    /// The caller's name for it, or its number.
    var name: Download.ID { self.naming.id }

    /// What a response says of the file: keeps its type, and returns the name it suggests, if one may still be chosen.
    func learn(from head: ResponseHead, announcing announced: AnnouncedDigests) -> String? {
        self.shared.withLock { shared in
            shared.mediaType = head.fields[values: .contentType].first?.lowercased()
            shared.lastAnnounced = announced.representation
        }
        guard self.shared.withLock({ !$0.isNamed }) else { return nil }
        // Without that field the name is the one from before.
        guard !head.fields[values: .contentDisposition].isEmpty else { return self.firstPaths.name }
        return self.naming.name(suggestedBy: head).value
    }

    /// Whether a web page comes where the URL names something else: often a login page or an apology with status 200.
    var isUnexpectedPage: Bool { self.naming.isUnexpectedPage(mediaType: self.shared.withLock { $0.mediaType }) }

    /// Makes the part file ready. Returns what was found instead, if the response named another destination and
    /// something is there.
    func prepare(_ preparation: Preparation, id: UInt64) async throws -> Surveyor.Finding? {
        // Nothing more of what was begun before comes out, whatever is found.
        let hasBegun = self.output != nil && self.part?.reader?.close() == true
        if hasBegun || self.output?.hasWritten == true {
            throw Failure(
                .changed, "the file would have to be begun anew, and some of it was handed on",
                hint: "Run the same command again, or save to a file, which can be gone on with")
        }
        if let finding = try await self.rename(to: preparation.suggestedName) {
            return finding
        }
        let found = self.shared.withLock { shared in
            shared.resource = preparation.resource
            shared.reference = preparation.source
            shared.announced = shared.lastAnnounced
            shared.isNamed = true
            return shared.part
        }
        let surveyed = try await self.setAside(found, preparation)
        surveyed?.describe(self.request.label(inheriting: surveyed?.header.label))
        surveyed?.keep(self.request.syncPolicy)
        let source = self.recorded(preparation.source)
        let digests = self.shared.withLock { $0.digests }.map(\.description)
        switch (preparation.mode, surveyed) {
        case (.adopted, let part?):
            try await part.adopt(
                id: id, resource: preparation.resource, limit: nil, sources: source, digests: digests,
                keepsRecord: preparation.keepsRecord)
        case (.adoptedUp(let limit), let part?):
            try await part.adopt(
                id: id, resource: preparation.resource, limit: limit, sources: source, digests: digests,
                keepsRecord: preparation.keepsRecord)
        case (.adopted, nil), (.adoptedUp, nil):
            throw Failure(.internal, "a part file to be resumed was not surveyed")
        case (.fresh, _):
            var created: PartialFile?
            do {
                let part: PartialFile
                if let surveyed {
                    part = surveyed
                } else {
                    part = try await self.createPart()
                    created = part
                    part.describe(self.request.label(inheriting: nil))
                    part.keep(self.request.syncPolicy)
                }
                try self.checkSpace(for: preparation.resource, part: part)
                try await part.begin(
                    preparation.resource, id: id, sources: source, digests: digests, allocates: self.request.allocates,
                    hasSetAside: found != nil && surveyed == nil)
                self.shared.withLock { $0.part = part }
            } catch {
                try? created?.discard()
                if let found, surveyed == nil { try? await self.storage.bringBack(found.paths) }
                throw error
            }
        }
        self.readAlong(id: id, length: preparation.resource.completeLength)
        return nil
    }

    /// Sets the surveyed part aside, if it is of another file; returns the part to go on with.
    private func setAside(
        _ part: PartialFile?, _ preparation: Preparation
    ) async throws(StorageError) -> PartialFile? {
        guard preparation.setsAside, let part, part.claimedLength > 0, try await self.storage.setAside(part.paths)
        else {
            return part
        }
        self.close()
        return nil
    }

    /// Has somebody read the file while it is fetched, if it is handed on or has digests.
    private func readAlong(id: UInt64, length: Int64?) {
        let (part, digests) = self.shared.withLock { ($0.part, $0.expected) }
        guard let part else { return }
        // The CRC-32 is combined from the blocks'.
        let algorithms = ExpectedDigest.Algorithm.allCases.filter { algorithm in
            algorithm != .crc32
                && (self.request.computedDigests.contains(algorithm) || digests.contains { $0.algorithm == algorithm })
        }
        let windowLength = self.request.windowLength
        part.read { claims, states in
            if let output = self.output {
                return InOrderReader(
                    to: output, part.file, id: id, algorithms: algorithms, windowLength: windowLength, length: length)
            }
            guard let length else { return nil }
            return InOrderReader(
                part.file, id: id, algorithms: algorithms, states: states, claims: claims, windowLength: windowLength,
                length: length)
        }
    }

    /// Takes the name the response suggests, unless the name is settled; what is found there, if anything.
    private func rename(to suggested: String?) async throws -> Surveyor.Finding? {
        guard let suggested, case .directory = self.request.destination else { return nil }
        let (current, isNamed) = self.shared.withLock { ($0.paths, $0.isNamed) }
        guard !isNamed, let current, current.name != suggested else { return nil }
        let (paths, finding) = try await self.surveyChosen(
            from: DestinationPaths(directory: current.directory, name: suggested))
        self.shared.withLock { shared in
            shared.part?.close()
            shared.part = finding.part
            // From now on that is its name, also when it is gone on with.
            shared.firstPaths = DestinationPaths(directory: current.directory, name: suggested)
            shared.paths = paths
            shared.isNamed = true
            if case .existing(let file) = finding.survey {
                shared.resource = file.record
                shared.progress.bytesDone = file.length
                shared.progress.bytesTotal = file.length
            }
        }
        return finding.survey == .nothing ? nil : finding
    }

    /// Creates the part; where the policy is to rename and another process was faster, that of the next free name.
    private func createPart() async throws -> PartialFile {
        while true {
            do {
                return try self.createPart(self.paths)
            } catch let failure as Failure where failure.code == .exists && self.request.ifExists == .rename {
                // The response was compared with no interrupted download.
                let (paths, finding) = try await self.surveyChosen(from: self.firstPaths, passesPartials: true)
                self.shared.withLock { $0.paths = paths }
                if let part = finding.part { return part }
            }
        }
    }

    private func createPart(_ paths: DestinationPaths) throws -> PartialFile {
        let file: any StorageFile
        do throws(StorageError) {
            file = try self.storage.open(paths.part, .create)
        } catch {
            guard error.condition == .exists else { throw error }
            throw Failure(.exists, "another process has begun to fetch \(paths.destination.printable)")
        }
        switch try file.tryLock() {
        case .taken: break
        case .busy: throw Failure(.exists, "another process has begun to fetch \(paths.destination.printable)")
        case .unsupported: self.noteUnlocked(paths)
        }
        let header = Manifest.Header(
            id: 0, resource: RemoteResource(completeLength: nil), completeLength: 0, device: 0, inode: 0, bootID: "",
            sources: [], digests: [])
        let part = PartialFile(paths: paths, file: file, storage: self.storage, header: header, claims: [])
        try part.protect()
        return part
    }

    private func checkSpace(for resource: RemoteResource, part: PartialFile) throws {
        guard let length = resource.completeLength else { return }
        let free = try self.storage.freeSpace(in: part.paths.directory)
        let reserved = try part.file.status().allocated
        guard length <= free.addingReportingOverflow(reserved).partialValue || free == .max else {
            throw Failure(
                .space,
                "the file needs \(length) bytes, and \(free + reserved) are free in "
                    + "\(part.paths.directory.printable). Nothing was written",
                hint: "Free some space, or choose another directory with -d")
        }
    }

    /// Withdraws what a source brought that is not believed any more.
    func revise(_ revision: Revision) async throws {
        let (part, digests) = self.shared.withLock { shared in
            shared.reference = revision.reference
            shared.resource = revision.resource
            return (shared.part, shared.digests)
        }
        try await part?.revise(
            withdrawing: revision.withdrawn,
            record: revision.keepsRecord
                ? nil : (revision.resource, self.recorded(revision.reference), digests.map(\.description)),
            remarks: revision.remarks)
    }

    /// From now on placing may be interrupted.
    func beginPlacing() {
        self.shared.withLock { $0.interruption = Latch() }
    }

    /// Verifies and moves into place.
    func place(length: Int64, isCompared: Bool) async throws {
        let (part, resource, flag, digests, replaceable) = self.shared.withLock { shared in
            shared.isCompared = isCompared
            return (shared.part, shared.resource, shared.interruption, shared.expected, shared.replaceable)
        }
        guard let part, let resource else { throw Failure(.internal, "there is no part file to finish") }
        var finisher = Finisher(
            storage: self.storage, part: part, resource: resource, digests: digests,
            computedDigests: self.request.computedDigests,
            replaces: self.request.ifExists == .overwrite || self.replacesExisting, alternative: self.alternative,
            keepsRemoteTime: self.request.keepsRemoteTime)
        finisher.replaceable = replaceable
        let result =
            self.output == nil
            ? try await finisher.finish(length: length, unless: flag)
            : try await finisher.handOn(length: length, unless: flag)
        self.shared.withLock { shared in
            shared.finished = result
            if let paths = result.paths { shared.paths = paths }
        }
        if let file = result.file { self.placed.insert(file) }
    }

    /// The destination's other names, where the policy is to rename.
    private var alternative: (@Sendable (Int) -> DestinationPaths?)? {
        guard self.request.ifExists == .rename else { return nil }
        let (naming, first) = (self.naming, self.firstPaths)
        return { naming.paths(from: first, number: $0) }
    }

    func interruptPlacing() {
        let part = self.shared.withLock { shared in
            shared.interruption.raise()
            return shared.part
        }
        part?.reader?.wake()
    }

    /// Deletes part and manifest, surveyed or not.
    func discard() throws {
        let part = self.shared.withLock { shared in
            defer { shared.part = nil }
            return shared.part
        }
        let paths = self.paths
        if let part {
            try part.discard()
        } else if case .partial = try self.surveyor.survey(paths, policy: .overwrite).survey {
            try self.storage.remove(paths.manifest)
            try self.storage.remove(paths.part)
        }
    }

    /// Gives up the part's lock, so that another run or process can go on.
    func close() {
        let part = self.shared.withLock { shared in
            defer { shared.part = nil }
            return shared.part
        }
        part?.close()
    }
}
