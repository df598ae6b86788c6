import SegmentedDownloadCore
import Synchronization

/// How the part is made ready between the first response and its first byte.
extension DownloadJob {
    /// Prepares the part file.
    ///
    /// - Returns: The finding, if a file or part exists at the destination: another one that the response named, or the
    ///   one that was surveyed on an assumption. Then nothing was prepared.
    func prepare(_ preparation: Preparation, id: UInt64) async throws -> Surveyor.Finding? {
        let preparation = self.withStatements(preparation)
        // The reader is closed first, so that it writes no further bytes of the earlier attempt to the output.
        let hasBegun = self.output != nil && self.part?.reader?.close() == true
        if hasBegun || self.output?.hasWritten == true {
            throw DownloadError(
                .changed, "the download must start over, but bytes were already written to the output",
                hint: "Discard the output and fetch again, or use a file as the destination")
        }
        if let finding = try await self.rename(to: preparation.suggestedName) {
            return finding
        }
        if let finding = try await self.completeSurvey() { return finding }
        try self.claimPath()
        let found = self.accept(preparation)
        let aside = try await self.setAside(found, preparation)
        let surveyed = aside == nil ? found : nil
        surveyed?.describe(self.statements(inheriting: surveyed?.header, id: id))
        surveyed?.keep(self.request.syncPolicy)
        let sources = self.request.recordedSources(reference: preparation.source)
        let digests = self.shared.withLock { $0.digests.recorded.map(\.description) }
        switch (preparation.mode, surveyed) {
        case (.adopted, let part?):
            try await part.adopt(
                id: id, resource: preparation.resource, limit: nil, sources: sources, digests: digests,
                keepsRecord: preparation.keepsRecord)
        case (.adoptedUp(let limit), let part?):
            try await part.adopt(
                id: id, resource: preparation.resource, limit: limit, sources: sources, digests: digests,
                keepsRecord: preparation.keepsRecord)
        case (.adopted, nil), (.adoptedUp, nil):
            throw DownloadError(.internal, "a part file to be resumed was not surveyed")
        case (.fresh, _):
            var created: PartialFile?
            do {
                let part: PartialFile
                if let surveyed {
                    part = surveyed
                } else {
                    part = try await self.createPart()
                    created = part
                    part.describe(self.statements(inheriting: nil, id: id))
                    part.keep(self.request.syncPolicy)
                }
                try part.checkSpace(for: preparation.resource.completeLength)
                try await part.begin(
                    preparation.resource, id: id, sources: sources, digests: digests,
                    allocates: self.request.allocates, hasSetAside: aside != nil)
                self.shared.withLock { $0.part = part }
            } catch {
                try? created?.discard()
                if let found, let aside { try? await self.storage.restoreSetAside(aside, to: found.paths) }
                throw error
            }
        }
        if let part = self.part { self.update(bytesDurable: part.durableLength) }
        self.readAlong(id: id, length: preparation.resource.completeLength)
        return nil
    }

    /// Refuses a name that another entry of the same job has. A numbered name is free.
    private func claimPath() throws(DownloadError) {
        guard self.request.ifExists != .rename, self.output == nil else { return }
        try self.request.placing?.claim(self.paths.destination)
    }

    /// What the user stated about the file, for the manifest.
    private func statements(inheriting earlier: Manifest.Header?, id: UInt64) -> UserStatements {
        UserStatements(
            label: self.request.label(inheriting: earlier?.label), pieces: self.shared.withLock { $0.pieces },
            selection: RequestSelection(self.selection, salt: id))
    }

    /// A preparation with what was stated before, if that holds for the new part.
    private func withStatements(_ preparation: Preparation) -> Preparation {
        guard preparation.keepsStatements else { return preparation }
        var preparation = preparation
        preparation.resource.state(self.shared.withLock { $0.digests.stated })
        return preparation
    }

    /// Takes the resource of an accepted response.
    ///
    /// - Returns: The part that was surveyed.
    private func accept(_ preparation: Preparation) -> PartialFile? {
        self.shared.withLock { shared in
            shared.resource = preparation.resource
            shared.reference = preparation.source
            if preparation.mode == .fresh, !preparation.keepsStatements {
                shared.digests.beginAnew()
                if !self.request.resumesPart { shared.pieces = self.request.pieceDigests }
            }
            shared.digests.state(preparation.resource.ownDigests)
            shared.destination.settle()
            // From now on a part at the destination is this download's own.
            shared.isAssumed = false
            return shared.part
        }
    }

    /// Prepares the part of a short file in memory, without a system call, if that is possible.
    ///
    /// - Returns: Whether it is prepared.
    /// - Throws: ``DownloadError`` with code `exists` if another download has the same destination.
    func prepareInMemory(_ preparation: Preparation, id: UInt64) throws(DownloadError) -> Bool {
        let preparation = self.withStatements(preparation)
        guard let memory, let length = preparation.resource.completeLength, self.mayBeInMemory(preparation) else {
            return false
        }
        try self.claimPath()
        let paths = self.paths
        let file: MemoryFile
        switch memory.place(for: paths.destination, length: length) {
        case .memory(let new): file = new
        case .disk: return false
        case .taken:
            throw DownloadError(.exists, "another download is already fetching \(paths.destination.printable)")
        }
        _ = self.accept(preparation)
        let statements = self.statements(inheriting: nil, id: id)
        let header = Manifest.Header(
            id: id, resource: preparation.resource, completeLength: length, device: 0, inode: 0, bootID: "",
            sources: self.request.recordedSources(reference: preparation.source),
            digests: self.shared.withLock { $0.digests.recorded.map(\.description) }, label: statements.label,
            pieces: statements.pieces, selection: statements.selection)
        let inMemory = PartialFile.InMemory(
            file: file, allocates: self.request.allocates, createsDirectory: self.request.createsDirectories
        ) { [weak self] in
            self?.noteUnlocked(paths)
        }
        let part = PartialFile(paths, in: inMemory, storage: self.storage, header: header)
        part.keep(self.request.syncPolicy)
        self.shared.withLock { $0.part = part }
        self.update(bytesDurable: 0)
        self.readAlong(id: id, length: length)
        return true
    }

    /// Whether a new file gets the surveyed name, where nothing was found. With the policy to rename, the part's lock
    /// keeps two processes from fetching to one name.
    private func mayBeInMemory(_ preparation: Preparation) -> Bool {
        guard preparation.mode == .fresh, !preparation.setsAside, self.output == nil,
            self.request.ifExists != .overwrite, self.request.ifExists != .rename
        else { return false }
        return self.shared.withLock { shared in
            shared.part == nil && shared.isClear && !shared.replacesExisting
                && preparation.suggestedName.flatMap { shared.destination.renamed(to: $0) } == nil
        }
    }

    /// Sets the surveyed part aside if it belongs to another file.
    ///
    /// - Returns: The paths it has now; `nil` if it was not set aside.
    /// - Throws: ``DownloadError`` with code `changed` if a page that may ask for a login would replace it, or if no name is free
    ///   for it. The part stays.
    private func setAside(_ part: PartialFile?, _ preparation: Preparation) async throws -> DestinationPaths? {
        guard preparation.setsAside, let part, part.claimedLength > 0 else { return nil }
        guard self.request.onChange == .restart || !self.mayBeLogin else {
            throw DownloadError(
                .changed, "the server sends a web page (text/html) now, and not the file of which a part is there",
                hint: "If it asks for a login, give the fields, cookies or credentials of the first run again. "
                    + "Otherwise choose another name")
        }
        guard let aside = try await self.storage.setAside(part.paths) else {
            throw DownloadError(
                .changed,
                "\(part.paths.part.printable) is part of another file and cannot be kept under another name",
                hint: "Choose another name, or delete \(part.paths.manifest.printable) and \(part.paths.part.printable)"
            )
        }
        self.memory?.directories.forget(part.paths.directory)
        let difference = self.shared.withLock { $0.partDifference }
        self.broadcaster.send(
            .note("the partial file belongs to another file (\(difference)); it is kept until the new one is complete"))
        self.close()
        return aside
    }

    /// Creates the part. With the policy to rename, if another process creates it first, creates the part of the next
    /// free name.
    private func createPart() async throws -> PartialFile {
        while true {
            do {
                let paths = self.paths
                let part = try PartialFile.create(paths, in: self.storage) { self.noteUnlocked(paths) }
                try self.check(part)
                return part
            } catch let failure as DownloadError where failure.code == .exists && self.request.ifExists == .rename {
                // Names with a part are skipped: the response was not compared with that part.
                let (paths, finding) = try await self.surveyChosen(from: self.firstPaths, passesPartials: true)
                self.shared.withLock { $0.destination.paths = paths }
                if let part = finding.part { return part }
            }
        }
    }

    /// With the policy to rename, checks that no other process has finished the file since the survey: its part had the
    /// new part's name until it got the file's. That process deletes its manifest afterwards, and would delete a manifest
    /// of the new part.
    ///
    /// - Throws: ``DownloadError`` with code `exists` if there is a file. The new part is deleted.
    private func check(_ part: PartialFile) throws {
        guard self.request.ifExists == .rename else { return }
        do {
            guard try self.storage.status(of: part.paths.destination) != nil else { return }
            throw DownloadError(.exists, "another process has just finished \(part.paths.destination.printable)")
        } catch {
            try? self.storage.remove(part.paths.part)
            part.close()
            throw error
        }
    }

    /// Sets up an in-order reader for the part if the file goes to a descriptor or has digests to compute.
    private func readAlong(id: UInt64, length: Int64?) {
        let (part, wanted) = self.shared.withLock { shared in
            shared.computedAlong = Set(shared.digests.all.map(\.algorithm) + self.request.computedDigests)
            // The algorithm of a digest in trailers is known when the bytes have left.
            if self.output != nil, shared.digestFollows { shared.computedAlong.formUnion(AnnouncedDigests.trailing) }
            // `Finisher` combines it from the blocks' checksums.
            shared.computedAlong.insert(.crc32)
            return (shared.part, shared.computedAlong.subtracting([.crc32]))
        }
        guard let part else { return }
        let algorithms = ExpectedDigest.Algorithm.allCases.filter(wanted.contains)
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
}
