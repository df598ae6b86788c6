import HTTPTypes
import SegmentedDownloadCore
import Synchronization

/// One download: its request, and the state that its tasks share.
final class DownloadJob: Sendable {
    private struct Shared {
        var paths: DestinationPaths?
        /// The paths known before any response.
        var firstPaths: DestinationPaths?
        /// Whether the destination's name is settled. If not, a response may suggest another.
        var isNamed: Bool
        var part: PartialFile?
        var resource: RemoteResource?
        /// The media type and the whole-file digest of the latest response.
        var mediaType: String?
        var lastAnnounced: ExpectedDigest?
        /// The whole-file digest of the response that defined the resource.
        var announced: ExpectedDigest?
        var finished: Finisher.Result?
        /// The request's digests, and those that the manifest of the same source records.
        var digests: [ExpectedDigest]
        /// Whether the note that the part cannot be locked was sent.
        var isNotedUnlocked = false
        var interruption = Latch()
        /// The reference source, which defines the resource.
        var reference = SourceID.first
        /// Whether an existing file at the destination is ignored by the survey and replaced by the result.
        var replacesExisting = false
        /// The existing file to be replaced, as the survey found it.
        var replaceable: StorageStatus?
        /// Whether some bytes were verified only by comparison.
        var isCompared = false
        var progress = DownloadProgress()
        var state = DownloadState.queued
        var requests = 0
        var bytesFetched: Int64 = 0
        var connectionsPeak = 0
        var connectionsLearned: Int?

        /// All digests that the file must have.
        ///
        /// The server's digest is not stored in the manifest, because every run receives it again. It is ignored if the
        /// user gave a digest of an algorithm that is at least as strong.
        var expected: [ExpectedDigest] {
            guard let announced,
                !self.digests.contains(where: { $0.algorithm.isTrusted(asMuchAs: announced.algorithm) })
            else { return self.digests }
            return self.digests + [announced]
        }
    }

    let id: DownloadID
    let request: DownloadRequest
    /// The redirect followers, one for each source, in the sources' order.
    private let followers: [RedirectFollower]
    let broadcaster = EventBroadcaster()
    private let storage: any Storage
    /// Where the bytes are written to, if the destination is not a file.
    private let output: (any InOrderOutput)?
    private let naming: DestinationNaming
    /// The files that the group's downloads have put in place.
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
        self.output = Self.output(of: request)
        self.storage = self.output == nil ? storage : StreamStorage()
        self.naming = DestinationNaming(
            request: request, id: request.id ?? Download.ID(rawValue: "\(id.rawValue)"), storage: self.storage)
        let isNamed = if case .directory = request.destination { false } else { true }
        self.shared = Mutex(Shared(isNamed: isNamed, digests: request.digests))
    }

    private static func output(of request: DownloadRequest) -> (any InOrderOutput)? {
        if let stream = request.stream { return stream }
        if case .descriptor(let descriptor) = request.destination { return OutputDescriptor(descriptor) }
        return nil
    }

    /// The redirect follower of a source.
    func follower(to source: SourceID) -> RedirectFollower { self.followers[source.rawValue] }

    /// The URL that the reference source's bytes come from, safe to show.
    var location: String {
        "\(self.followers[self.shared.withLock { $0.reference }.rawValue].current)"
    }

    /// The URL of a source as given, safe to show.
    func description(of source: SourceID) -> String { "\(self.request.sources[source.rawValue])" }

    /// The sources as the manifest records them.
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
    /// The complete length that the response stated; `nil` if there is none yet, or it states none.
    var lengthStated: Int64? { self.shared.withLock { $0.resource?.completeLength } }
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

    /// Puts a new job into state `paused`, before there are observers.
    func rest(as progress: DownloadProgress) {
        self.shared.withLock { shared in
            shared.state = .paused
            shared.progress = progress
        }
        self.broadcaster.send(.paused(progress))
    }

    /// The best number of connections; `nil` if it was not measured.
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

    /// The result of a completed download.
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

    /// Examines the destination.
    func survey() async throws -> Surveyor.Finding {
        // A part that was found to have changed on the server is still open and locked by this process.
        self.close()
        var (paths, finding) = try await self.surveyChosen(from: self.firstPaths)
        self.shared.withLock { shared in
            shared.paths = paths
            shared.part = finding.part
            // An existing part or file fixes the name.
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

    /// Examines the destination. With the policy to rename, examines the first name that has no file and that no other
    /// process is fetching.
    ///
    /// - Parameter passesPartials: Whether names with an interrupted download are skipped too.
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
                // Another process may have created the file after the name was chosen.
                case .existing where self.request.ifExists == .rename: break
                case .partial where passesPartials: finding.part?.close()
                case .existing, .partial, .nothing: return (paths, finding)
                }
            } catch let failure as Failure where failure.code == .exists && self.request.ifExists == .rename {
                // Another process has locked the part of that name: try the next.
            }
            number += 1
        }
    }

    /// Sends a note, once, that the part cannot be locked against other processes.
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

    /// Makes later surveys ignore an existing file at the destination, which the finished download replaces.
    func replaceExisting() {
        self.shared.withLock { $0.replacesExisting = true }
    }

    private var replacesExisting: Bool { self.shared.withLock { $0.replacesExisting } }

    /// Examines a destination, and removes files that a crash between the last steps of an earlier run left beside it.
    private func survey(_ paths: DestinationPaths) async throws -> Surveyor.Finding {
        try self.storage.removeAbandonedClaim(paths)
        try self.removeSecondName(paths)
        if self.replacesExisting {
            let found = try self.storage.status(of: paths.destination)
            if let found, self.placed.contains(found) {
                throw Failure(
                    .exists, "another URL of this run has the same file name, \(paths.destination.printable)",
                    remedy: .keepBothOrChooseName)
            }
            self.shared.withLock { $0.replaceable = found }
        }
        let finding = try self.surveyor.survey(
            paths, policy: self.replacesExisting ? .overwrite : self.request.settings.ifExists)
        guard case .existing(let file) = finding.survey, try self.storage.status(of: paths.part) == nil else {
            return finding
        }
        let hasManifest = try self.storage.hasManifest(paths)
        // The process that renamed the file may have crashed before it synced the directory.
        if hasManifest || file.record != nil { try await self.storage.synchronize(directory: paths.directory) }
        // Another process may have begun to replace the file since the first check.
        if hasManifest, try self.storage.status(of: paths.part) == nil {
            try self.storage.removeSetAside(of: paths)
            try self.storage.removeManifests(paths)
        }
        return finding
    }

    /// Removes the part's name if it is a second name of the finished file: a crash after the hard link leaves both.
    private func removeSecondName(_ paths: DestinationPaths) throws {
        guard let part = try self.storage.status(of: paths.part), part.kind == .file,
            try self.storage.status(of: paths.destination)?.isSameFile(as: part) == true
        else { return }
        try self.storage.remove(paths.part)
    }

    /// Adds the digests that the manifest of the same source records, except for algorithms that the request gives
    /// itself.
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

    /// The destination as far as it is known before any response.
    private var firstPaths: DestinationPaths {
        if let known = self.shared.withLock({ $0.firstPaths }) { return known }
        let paths = self.naming.paths
        self.shared.withLock { $0.firstPaths = paths }
        return paths
    }

    /// Whether the destination's name is settled.
    var hasName: Bool { self.shared.withLock { $0.isNamed } }

    /// The caller's name for the download, or its number.
    var name: Download.ID { self.naming.id }

    /// Records the media type and digest that a response head states.
    ///
    /// - Returns: The file name that the response suggests; `nil` if the name is already settled.
    func learn(from head: ResponseHead, announcing announced: AnnouncedDigests) -> String? {
        self.shared.withLock { shared in
            shared.mediaType = head.fields[values: .contentType].first?.lowercased()
            shared.lastAnnounced = announced.representation
        }
        guard self.shared.withLock({ !$0.isNamed }) else { return nil }
        // Without `Content-Disposition` the name depends only on the URL and stays as it was.
        guard !head.fields[values: .contentDisposition].isEmpty else { return self.firstPaths.name }
        return self.naming.name(suggestedBy: head).value
    }

    /// Whether the server sends a web page although the URL names another kind of file; often a login or error page
    /// with status 200.
    var isUnexpectedPage: Bool { self.naming.isUnexpectedPage(mediaType: self.shared.withLock { $0.mediaType }) }

    /// Prepares the part file.
    ///
    /// - Returns: The finding, if the response named another destination and a file or part exists there. Then nothing
    ///   was prepared.
    func prepare(_ preparation: Preparation, id: UInt64) async throws -> Surveyor.Finding? {
        // The reader is closed first, so that it writes no further bytes of the earlier attempt to the output.
        let hasBegun = self.output != nil && self.part?.reader?.close() == true
        if hasBegun || self.output?.hasWritten == true {
            throw Failure(
                .changed, "the download would have to start over, but part of it is already in the output",
                hint: "Run the same command again, or save to a file, which can be resumed")
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

    /// Sets the surveyed part aside if it belongs to another file.
    ///
    /// - Returns: The part to resume; `nil` if it was set aside.
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

    /// Sets up an in-order reader for the part if the file goes to a descriptor or has digests to compute.
    private func readAlong(id: UInt64, length: Int64?) {
        let (part, digests) = self.shared.withLock { ($0.part, $0.expected) }
        guard let part else { return }
        // CRC-32 is not computed here: `Finisher` combines it from the blocks' checksums.
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

    /// Takes the name that the response suggests, unless the name is settled.
    ///
    /// - Returns: The finding at the new name, if there is a file or a part.
    private func rename(to suggested: String?) async throws -> Surveyor.Finding? {
        guard let suggested, case .directory = self.request.destination else { return nil }
        let (current, isNamed) = self.shared.withLock { ($0.paths, $0.isNamed) }
        guard !isNamed, let current, current.name != suggested else { return nil }
        let (paths, finding) = try await self.surveyChosen(
            from: DestinationPaths(directory: current.directory, name: suggested))
        self.shared.withLock { shared in
            shared.part?.close()
            shared.part = finding.part
            // A later survey, after a pause or failure, uses this name too.
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

    /// Creates the part. With the policy to rename, if another process creates it first, creates the part of the next
    /// free name.
    private func createPart() async throws -> PartialFile {
        while true {
            do {
                return try self.createPart(self.paths)
            } catch let failure as Failure where failure.code == .exists && self.request.ifExists == .rename {
                // Names with a part are skipped: the response was not compared with that part.
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
            throw Failure(.exists, "another process is already fetching \(paths.destination.printable)")
        }
        switch try file.tryLock() {
        case .taken: break
        case .busy: throw Failure(.exists, "another process is already fetching \(paths.destination.printable)")
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
                remedy: .freeSpaceOrChooseDirectory)
        }
    }

    /// Withdraws bytes of a source that is no longer trusted.
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

    /// Prepares a new latch that can interrupt the placing.
    func beginPlacing() {
        self.shared.withLock { $0.interruption = Latch() }
    }

    /// Verifies the file and moves it into place.
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
        let result: Finisher.Result
        do {
            result =
                self.output == nil
                ? try await finisher.finish(length: length, unless: flag)
                : try await finisher.handOn(length: length, unless: flag)
        } catch {
            // The file is in place, and a step after that failed. The next attempt finds it, and must not replace it by
            // the same bytes.
            if part.isPlaced { self.shared.withLock { $0.replacesExisting = false } }
            throw error
        }
        self.shared.withLock { shared in
            shared.finished = result
            if let paths = result.paths { shared.paths = paths }
        }
        if let file = result.file { self.placed.insert(file) }
    }

    /// The destination's numbered names, if the policy is to rename.
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

    /// Deletes the part and its manifest, whether they were surveyed or not.
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

    /// Closes the part and releases its lock, so that another run or process can resume it.
    func close() {
        let part = self.shared.withLock { shared in
            defer { shared.part = nil }
            return shared.part
        }
        part?.close()
    }
}
