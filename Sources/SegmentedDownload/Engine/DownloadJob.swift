import SegmentedDownloadCore
import Synchronization

/// One download: its request, and the state that its tasks share.
final class DownloadJob: Sendable {
    struct Shared {
        var destination: DestinationChoice
        var part: PartialFile?
        /// Whether the survey found neither part nor manifest at the destination, as far as it looked.
        var isClear = false
        /// Whether the survey did not look for manifests, because the directory had none.
        var isAssumed = false
        var resource: RemoteResource?
        /// The reference source, which defines the resource.
        var reference = SourceID.first
        /// The media type of the latest response.
        var mediaType: String?
        var digests: RequiredDigests
        /// Whether a response's trailers will state a digest.
        var digestFollows = false
        /// The digests that are known when the last byte has arrived, also if the bytes are not stored.
        var computedAlong: Set<ExpectedDigest.Algorithm> = []
        /// Whether the note that a digest cannot be compared was sent.
        var isNotedUncompared = false
        /// The digests of pieces that were given in this run or an earlier one.
        var pieces: PieceDigests?
        /// Whether the note that the part cannot be locked was sent.
        var isNotedUnlocked = false
        /// Whether an existing file at the destination is ignored by the survey and replaced by the result.
        var replacesExisting = false
        /// The existing file to be replaced, as the survey found it.
        var replaceable: StorageStatus?
        /// The file at the destination that this download has claimed.
        var claimed: FileIdentity?
        var interruption = Latch()
        var progress = DownloadProgress()
        var state = DownloadState.queued
        var counts = TransferCounts()
        var connectionCountFound: Int?

        /// How the part differs from the file to be fetched, if it is to be set aside.
        var partDifference = ""
        /// Whether a part without a manifest at the destination is this download's.
        var ownsUnrecordedPart = false

        /// Notes that the destination exists already.
        mutating func note(_ file: ExistingFile) {
            self.resource = file.record
            self.progress.bytesDone = file.length
            self.progress.bytesTotal = file.length
        }
    }

    let id: DownloadID
    let request: DownloadRequest
    private let connectionsKnown: Int?
    private let startsPaused: Bool
    /// The redirect followers, one for each source, in the sources' order.
    private let followers: [RedirectFollower]
    let broadcaster = EventBroadcaster()
    let storage: any Storage
    /// The consumer that gets the bytes instead of the destination; nil for none.
    let stream: ByteStream?
    /// Where the bytes are written to, if the destination is not a file.
    let output: (any InOrderOutput)?
    let naming: DestinationNaming
    /// What the request selects the representation with, besides its URL.
    let selection: RequestSelection.Values
    /// What the request asks for. A completion counts for requests that this covers.
    let content: RequestedContent
    /// The files that the group's downloads have put in place.
    let placed: PlacedFiles
    /// The memory for the parts of short files; nil if all parts are on disk.
    let memory: PartMemory?
    let shared: Mutex<Shared>

    /// - Parameters:
    ///   - selection: What the request selects the representation with, besides its URL.
    ///   - connectionsKnown: The number of connections that was best the last time; nil if it is not remembered.
    ///   - startsPaused: Whether the download begins paused.
    ///   - stream: The consumer that gets the bytes instead of the destination; nil for none.
    ///   - output: Where the bytes are written to, if the destination is not a file; see ``output(of:_:clock:)``.
    ///   - memory: The memory for the parts of short files; nil if all parts are on disk.
    init(
        id: DownloadID, request: DownloadRequest, followers: [RedirectFollower], storage: any Storage,
        placed: PlacedFiles, selection: RequestSelection.Values = [:], connectionsKnown: Int? = nil,
        startsPaused: Bool = false,
        stream: ByteStream? = nil, output: (any InOrderOutput)? = nil, memory: PartMemory? = nil
    ) {
        self.memory = memory
        self.placed = placed
        self.selection = selection
        self.content = RequestedContent(request, selection)
        self.id = id
        self.request = request
        self.connectionsKnown = connectionsKnown
        self.startsPaused = startsPaused
        self.followers = followers
        self.stream = stream
        self.output = output
        let confined = request.rootDirectory.map { storage.confined(to: $0) } ?? storage
        self.storage =
            self.output != nil
            ? StreamStorage() : request.window.map { WindowStorage($0, in: confined) } ?? confined
        self.naming = DestinationNaming(
            request: request, id: request.id ?? Download.ID(rawValue: "\(id.rawValue)"), storage: self.storage)
        self.shared = Mutex(
            Shared(
                destination: DestinationChoice(request.destination), digests: RequiredDigests(request.digests),
                pieces: request.pieceDigests))
    }

    /// Where a request's bytes are written to; nil if they are stored in a file. Opens a pipe, so it is called without
    /// a lock.
    static func output(
        of request: DownloadRequest, _ stream: ByteStream?, clock: any EngineClock
    ) -> (any InOrderOutput)? {
        switch (stream, request.destination) {
        case (let stream?, _): stream
        case (nil, .descriptor(let descriptor)): OutputDescriptor(descriptor, clock: clock)
        case (nil, .stream(let path)): NamedOutput(path.string, clock: clock)
        case (nil, .file), (nil, .directory): nil
        }
    }

    /// The settings of the state machine.
    var settings: DownloadSettings {
        var settings = DownloadSettings(self.request.options)
        settings.connectionsKnown = self.connectionsKnown
        settings.hosts = self.request.sources.map(\.host)
        settings.startsPaused = self.startsPaused
        settings.requiredResource = self.request.requiredResource
        return settings
    }

    // MARK: Sources

    /// The redirect follower of a source.
    func follower(to source: SourceID) -> RedirectFollower { self.followers[source.rawValue] }

    /// The URL that the reference source's bytes come from, safe to show.
    var location: String {
        "\(self.followers[self.shared.withLock { $0.reference }.rawValue].current)"
    }

    /// The URL of a source as given, safe to show.
    func description(of source: SourceID) -> String { "\(self.request.sources[source.rawValue])" }

    // MARK: State and progress

    var part: PartialFile? { self.shared.withLock { $0.part } }
    /// The complete length that the response stated; nil if there is none yet, or it states none.
    var lengthStated: Int64? { self.shared.withLock { $0.resource?.completeLength } }
    var progress: DownloadProgress { self.shared.withLock { $0.progress } }
    var state: DownloadState { self.shared.withLock { $0.state } }
    /// Whether all bytes of the complete file will be compared with a digest, or with those of its pieces.
    var hasDigest: Bool { self.shared.withLock { !$0.digests.all.isEmpty } || self.pieceDigests != nil }
    var bytesFetched: Int64 { self.shared.withLock { $0.counts.bytesFetched } }

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
    var connectionCountFound: Int? { self.shared.withLock { $0.connectionCountFound } }

    func record(connectionCount connections: Int) {
        self.shared.withLock { $0.connectionCountFound = connections }
    }

    /// Updates the progress, except for its durable bytes, which the storage steps report.
    func update(progress: DownloadProgress) {
        self.shared.withLock { shared in
            let bytesDurable = shared.progress.bytesDurable
            shared.progress = progress
            // A download that starts over with one stream has fewer bytes than were durable.
            shared.progress.bytesDurable = min(bytesDurable, progress.bytesDone)
        }
    }

    func update(bytesDurable: Int64) {
        self.shared.withLock { $0.progress.bytesDurable = bytesDurable }
    }

    /// Sets the durable bytes of the final progress, and updates the progress.
    ///
    /// - Parameter part: The part that the download had; nil if it had none.
    func conclude(_ progress: inout DownloadProgress, _ part: PartialFile?, isInPlace: Bool) {
        if isInPlace {
            let isSynced = self.output == nil && self.request.syncPolicy != .none
            if isSynced { progress.bytesDurable = progress.bytesDone }
        } else if let part {
            progress.bytesDurable = part.durableLength
        }
        self.update(bytesDurable: progress.bytesDurable)
        self.update(progress: progress)
    }

    func count(requests: Int = 0, bytesFetched: Int64 = 0, connections: Int = 0) {
        self.shared.withLock {
            $0.counts.add(requests: requests, bytesFetched: bytesFetched, connections: connections)
        }
    }

    // MARK: The part

    /// Records digests of the whole file that an accepted response states.
    ///
    /// - Parameter source: The source of a response whose bytes are only compared; nil if they are written.
    func note(stated: [ExpectedDigest], comparing source: SourceID? = nil) throws(StorageError) {
        let (part, ignored) = self.shared.withLock { shared -> (PartialFile?, [ExpectedDigest]) in
            // Another source may have another file.
            guard source == nil || source == shared.reference else { return (nil, []) }
            shared.resource?.state(stated)
            guard shared.resource?.isPart != true else { return (shared.part, []) }
            // Bytes that were written to a descriptor cannot be read again.
            let comparable = self.output == nil ? Set(ExpectedDigest.Algorithm.allCases) : shared.computedAlong
            shared.digests.state(stated.filter { comparable.contains($0.algorithm) })
            let ignored = shared.isNotedUncompared ? [] : stated.filter { !comparable.contains($0.algorithm) }
            if !ignored.isEmpty { shared.isNotedUncompared = true }
            return (shared.part, ignored)
        }
        try part?.state(stated.map { StatedDigest($0) })
        guard let first = ignored.first else { return }
        self.broadcaster.send(
            .note(
                "the server states the file's \(first.algorithm.rawValue) when bytes were already written to the output; "
                    + "it is not compared"))
    }

    /// Withdraws bytes of a source that is no longer trusted.
    func revise(_ revision: Revision) async throws {
        let (part, resource, digests) = self.shared.withLock { shared in
            shared.reference = revision.reference
            var resource = revision.resource
            resource.state(shared.resource?.digests ?? [])
            shared.resource = resource
            return (shared.part, resource, shared.digests)
        }
        try await part?.revise(
            withdrawing: revision.withdrawn,
            record: revision.keepsRecord
                ? nil
                : (
                    resource, self.request.recordedSources(reference: revision.reference),
                    digests.recorded.map(\.description)
                ),
            remarks: revision.remarks)
        if let part { self.update(bytesDurable: part.durableLength) }
    }

    /// Deletes the part and its manifest, whether they were surveyed or not. A part without a manifest is deleted only if it
    /// is known to be this download's: see ``Download/claimUnrecordedPart()``.
    func discard() throws {
        if let part = self.takePart() { return try part.discard() }
        var surveyor = self.surveyor
        // A survey may have been interrupted for this.
        surveyor.interruption = Latch()
        let finding = try surveyor.survey(self.paths, policy: .overwrite)
        switch finding.survey {
        case .partial: try finding.part?.discard()
        case .nothing, .existing:
            guard self.shared.withLock({ $0.ownsUnrecordedPart }) else { return }
            try finding.part?.discard()
            // A kill after the part was renamed leaves the manifest alone.
            try self.storage.removeManifests(self.paths)
        }
    }

    /// Notes how the part differs from the file to be fetched, for the note that is sent once it is set aside.
    func notePart(differing difference: String) { self.shared.withLock { $0.partDifference = difference } }

    func claimUnrecordedPart() { self.shared.withLock { $0.ownsUnrecordedPart = true } }

    /// Closes the part and releases its lock, so that another run or process can resume it. Blocks the thread.
    func close() {
        self.takePart()?.close()
    }

    /// Hands the part over to the caller, who closes it.
    func takePart() -> PartialFile? {
        self.shared.withLock { shared in
            defer { shared.part = nil }
            return shared.part
        }
    }
}
