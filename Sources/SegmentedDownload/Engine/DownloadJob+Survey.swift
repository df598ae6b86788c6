import SegmentedDownloadCore
import Synchronization

/// What exists at the destination before the first request.
extension DownloadJob {
    /// Examines the destination.
    func survey() async throws -> Surveyor.Finding {
        // A part that was found to have changed on the server is still open and locked by this process.
        self.close()
        if let finding = try self.surveyKnown(self.firstPaths) {
            return try self.recordFound(finding, at: self.firstPaths)
        }
        return try await self.surveyAll()
    }

    /// Looks for the manifests too, if the survey did not.
    ///
    /// - Returns: What was found; `nil` for nothing.
    func completeSurvey() async throws -> Surveyor.Finding? {
        guard self.shared.withLock({ $0.isAssumed }) else { return nil }
        let finding = try await self.surveyAll()
        return finding.survey == .nothing ? nil : finding
    }

    private func surveyAll() async throws -> Surveyor.Finding {
        let (paths, finding) = try await self.surveyChosen(from: self.firstPaths)
        return try self.recordFound(finding, at: paths)
    }

    /// What is known of directories; `nil` if the file cannot begin in memory, or is not to be in a directory.
    private var knownDirectories: KnownDirectories? {
        guard self.output == nil, self.request.window == nil, self.request.createsDirectories,
            self.request.ifExists != .rename, self.request.ifExists != .overwrite
        else { return nil }
        return self.memory?.directories
    }

    /// Examines a destination in a directory without manifests.
    ///
    /// - Returns: `nil` if a file or a part is there, or the directory is not known.
    private func surveyKnown(_ paths: DestinationPaths) throws -> Surveyor.Finding? {
        guard let knownDirectories, !self.replacesExisting, knownDirectories.isClear(paths.directory),
            try self.storage.status(of: paths.destination) == nil, try self.storage.status(of: paths.part) == nil
        else { return nil }
        self.shared.withLock { $0.replaceable = nil }
        return Surveyor.Finding(survey: .nothing, part: nil, note: nil, isClear: true, isAssumed: true)
    }

    /// Records what was found at the destination, and sends the finding's note.
    ///
    /// - Returns: The finding, with what the digests of the request and of earlier runs mean for a part.
    /// - Throws: ``DownloadError`` with code `changed` if a part was begun with another request.
    func recordFound(_ found: Surveyor.Finding, at paths: DestinationPaths) throws(DownloadError) -> Surveyor.Finding {
        var finding = found
        if let part = finding.part, let other = self.contradiction(of: part.header) {
            guard self.request.onChange == .restart else {
                part.close()
                throw DownloadError(
                    .changed,
                    "\(paths.part.printable) was begun by a request for which the server may have another file: this one is \(other). The part is kept",
                    hint: "Give the same header fields, cookies, user name and addresses as in the first run")
            }
            finding.survey = .nothing
        }
        if let note = finding.note { self.broadcaster.send(.note(note)) }
        self.shared.withLock { shared in
            shared.destination.paths = paths
            shared.part = finding.part
            shared.isClear = finding.isClear
            shared.isAssumed = finding.isAssumed
            // An existing part or file fixes the name.
            if finding.survey != .nothing { shared.destination.settle() }
            if case .partial(var saved) = finding.survey, let header = finding.part?.header {
                if self.request.continuation != .no,
                    shared.digests.inherit(header, of: self.request.source, isSameFile: self.request.resumesPart)
                {
                    shared.pieces = self.request.pieceDigests ?? header.pieces
                }
                saved.hasDigests = !shared.digests.recorded.isEmpty || shared.pieces != nil
                saved.isPinned = shared.digests.pins(header)
                finding.survey = .partial(saved)
            }
            if case .existing(let file) = finding.survey { shared.note(file) }
        }
        return finding
    }

    /// Examines the destination. With the policy to rename, examines the first name that has no file, no interrupted
    /// download of another file, and that no other process is fetching.
    ///
    /// - Parameter passesPartials: Whether names with any interrupted download are skipped.
    func surveyChosen(
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
                case .partial where passesPartials || self.isOfOtherFile(finding.part): finding.part?.close()
                case .existing, .partial, .nothing: return (paths, finding)
                }
            } catch let failure as DownloadError where failure.code == .exists && self.request.ifExists == .rename {
                // Another process has locked the part of that name: try the next.
            }
            number += 1
        }
    }

    /// How the request contradicts the one that a part was begun with, as a clause for a message; nil if it does not, or if
    /// digests that the user gave decide.
    private func contradiction(of header: Manifest.Header) -> String? {
        guard let selection = header.selection, self.request.continuation != .no,
            !self.shared.withLock({ $0.digests.pins(header) })
        else { return nil }
        return selection.contradiction(by: self.selection, hasStrongTag: header.resource.validator.isStrong)
    }

    /// Whether a part is the interrupted download of another file, and stays because the policy is to rename.
    ///
    /// It is of the same file if it has one of the request's URLs, or the request's digests.
    private func isOfOtherFile(_ part: PartialFile?) -> Bool {
        guard self.request.ifExists == .rename, self.request.continuation != .must, !self.request.resumesPart,
            let header = part?.header
        else { return false }
        guard header.label.part == self.request.part else { return true }
        if self.shared.withLock({ $0.digests.pins(header) }) { return false }
        if self.contradiction(of: header) != nil { return true }
        let own = Set(self.request.sources.map(\.resourceText))
        return !header.recordedSources.contains { source in
            RecordedSource.resourceText(of: source.url).map { own.contains($0) } ?? false
        }
    }

    /// Sends a note, once, that the part cannot be locked against other processes.
    func noteUnlocked(_ paths: DestinationPaths) {
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

    /// Has later surveys compare an existing file with digests that a server stated about it, too.
    func require(_ digests: [ExpectedDigest]) {
        self.shared.withLock { $0.digests.state(digests) }
    }

    var replacesExisting: Bool { self.shared.withLock { $0.replacesExisting } }

    var surveyor: Surveyor {
        let (digests, interruption) = self.shared.withLock { ($0.digests.all, $0.interruption) }
        var surveyor = Surveyor(storage: self.storage, digests: digests, sources: self.request.sources)
        surveyor.interruption = interruption
        surveyor.pieceDigests = self.pieceDigests
        surveyor.placing = self.request.placing
        surveyor.selection = self.selection
        return surveyor
    }

    /// The digests of pieces to verify; nil if there are none, others are stronger, or the complete file cannot be read.
    var pieceDigests: PieceDigests? {
        guard self.request.part == nil, self.request.window == nil, self.output == nil else { return nil }
        return self.shared.withLock { shared in
            shared.digests.recorded.contains(where: \.isCollisionResistant) ? nil : shared.pieces
        }
    }

    /// Examines a destination, and removes files that a crash between the last steps of an earlier run left beside it.
    private func survey(_ paths: DestinationPaths) async throws -> Surveyor.Finding {
        if try self.surveyor.isClear(paths) {
            self.shared.withLock { $0.replaceable = nil }
            try self.storage.checkWritable(directory: paths.directory)
            self.knownDirectories?.noteClear(paths, in: self.storage)
            return Surveyor.Finding(survey: .nothing, part: nil, note: nil, isClear: true)
        }
        try self.storage.removeAbandonedClaim(paths)
        try self.storage.removeSecondName(paths)
        if self.replacesExisting {
            let found = try self.storage.status(of: paths.destination)
            try self.checkPlaced(found, paths, in: .group)
            self.shared.withLock { $0.replaceable = found }
        }
        try self.checkOverwritten(paths)
        let finding = try self.surveyor.survey(
            paths, policy: self.replacesExisting ? .overwrite : self.settings.ifExists)
        if case .existing(let file) = finding.survey {
            let found = try self.storage.status(of: paths.destination)
            if self.keepsUnproven(file) { try self.checkPlaced(found, paths, in: .run) }
            try self.claim(file, found, at: paths)
            let isRecognized = self.request.placing != nil && file.isIdentified == true
            try await self.storage.completePlacing(paths, hasRecord: file.record != nil || isRecognized)
        }
        return finding
    }
    /// Throws if the request replaces any existing file, and this one is of another download of the run.
    func checkOverwritten(_ paths: DestinationPaths) throws {
        guard self.request.ifExists == .overwrite else { return }
        try self.checkPlaced(try self.storage.status(of: paths.destination), paths, in: .run)
    }

    /// Throws if another download of the group has put the file at the destination in place.
    private func checkPlaced(
        _ found: StorageStatus?, _ paths: DestinationPaths, in scope: PlacedFiles.Scope
    ) throws(DownloadError) {
        guard let found,
            self.placed.hasOther(
                than: self.content, found, at: paths.destination, in: scope)
        else { return }
        throw self.sameDestination(paths)
    }

    /// Claims a file at the destination before it is known whether it is this download's. Otherwise one of two downloads could
    /// report a file that the other replaces.
    private func claim(
        _ file: ExistingFile, _ found: StorageStatus?, at paths: DestinationPaths
    ) throws(DownloadError) {
        guard let found else { return }
        switch self.settings.ifExists {
        case .skip, .rename, .fail, .overwrite: return
        case .verify, .update, .newer: break
        }
        // Another program may have replaced the file since an earlier survey.
        if let earlier = self.shared.withLock({ $0.claimed }), earlier != found.identity {
            self.endClaim(isKept: false)
        }
        guard
            self.placed.claim(
                self.content, found, at: paths.destination, by: self.id,
                isIdentified: file.isIdentified == true)
        else { throw self.sameDestination(paths) }
        self.shared.withLock { $0.claimed = found.identity }
    }

    /// Ends the claim of a file at the destination.
    ///
    /// - Parameter isKept: Whether the file is this download's.
    func endClaim(isKept: Bool) {
        let claimed = self.shared.withLock { shared in
            defer { shared.claimed = nil }
            return shared.claimed
        }
        guard let claimed else { return }
        self.placed.endClaim(self.content, claimed, by: self.id, isKept: isKept)
    }

    private func sameDestination(_ paths: DestinationPaths) -> DownloadError {
        DownloadError(
            .exists, "another download of this run has the same destination, \(paths.destination.printable)",
            remedy: .keepBothOrChooseName)
    }

    /// Whether an existing file may be kept although neither a digest nor its record proves that it is the remote one.
    private func keepsUnproven(_ file: ExistingFile) -> Bool {
        switch self.settings.ifExists {
        case .skip: file.isIdentified != true
        case .update, .newer: file.isIdentified == nil && file.record?.completeLength != file.length
        case .verify, .rename, .overwrite, .fail: false
        }
    }
}
