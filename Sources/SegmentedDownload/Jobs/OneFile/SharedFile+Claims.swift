package import SegmentedDownloadCore

/// What tasks have fetched of a range whose rest another task fetches.
extension SharedFile {
    /// Begins the download of a task's range, or of a piece of it, with what others have fetched of it, and so that they see it.
    /// Does nothing if it has begun, or if nothing proves that it is of the plan's version.
    ///
    /// What others claim may not be durable, so the download reads the bytes back and compares their checksums.
    ///
    /// - Parameters:
    ///   - task: The request for a window of the task's range.
    ///   - current: The file as the server has it now.
    ///   - id: Random.
    package func begin(
        _ task: DownloadRequest, of shard: Shard, _ plan: SharedFilePlan, as current: RemoteResource, id: UInt64
    ) async throws {
        guard let window = task.window, let resource = task.requiredResource, case .file(let path) = task.destination
        else { return }
        let paths = DestinationPaths(path: path.string)
        guard try self.storage.status(of: paths.part) == nil else { return }
        let found = try self.found(of: window.range, of: shard, plan, as: current)
        let storage = WindowStorage(window, in: self.storage)
        var header = Manifest.Header(
            id: id, resource: resource, completeLength: window.length, device: 0, inode: 0, bootID: "",
            sources: task.recordedSources(reference: .first), digests: [], label: task.label(inheriting: nil))
        header.resource.state(found.stated)
        let part = PartialFile(
            paths: paths, file: try PartialFile.createFile(paths, in: storage, noteUnlocked: {}), storage: storage,
            header: header, claims: found.settled)
        do throws(StorageError) {
            try await part.writeManifest(durableCount: 0)
        } catch {
            try? part.discard()
            throw error
        }
        part.close()
    }

    /// What others have fetched of a range, and what the server has stated to them about the whole file.
    private struct Found {
        var claims: [Claim] = []
        var stated: [ExpectedDigest] = []

        /// The claims, ordered and disjoint.
        var settled: [Claim] {
            var (settled, reached) = ([Claim](), Int64(0))
            for claim in self.claims.sorted(by: { $0.offset < $1.offset }) where claim.offset >= reached {
                settled.append(claim)
                reached = claim.range.upperBound
            }
            return settled
        }
    }

    /// What manifests and records claim of bytes of a task's range, counted from the first of the bytes.
    private func found(
        of bytes: Range<Int64>, of shard: Shard, _ plan: SharedFilePlan, as current: RemoteResource
    ) throws -> Found {
        let range = plan.division.range(of: shard)
        var found = Found()
        self.add(
            from: self.paths(of: shard).manifest, of: plan.resource(of: range, as: current), range, to: bytes, &found)
        for file in try self.names().compactMap({ PieceFile($0) }) where file.piece.shard == shard {
            guard file.piece.index < plan.division.pieces(of: shard).count else { continue }
            let range = plan.division.range(of: file.piece)
            let path = "\(self.directory)/\(file.name)"
            switch file.kind {
            case .manifest: self.add(from: path, of: plan.resource(of: range, as: current), range, to: bytes, &found)
            case .record: try self.add(fromRecordAt: path, file.piece, to: bytes, plan, &found)
            case .other: break
            }
        }
        return found
    }

    /// Adds what a manifest has.
    ///
    /// - Parameters:
    ///   - resource: What the manifest must be of.
    ///   - range: The bytes that the manifest is for.
    ///   - bytes: The bytes whose claims are wanted.
    private func add(
        from path: String, of resource: RemoteResource?, _ range: Range<Int64>, to bytes: Range<Int64>,
        _ found: inout Found
    ) {
        guard let resource, let content = try? self.job.contents(of: path, Surveyor.manifestLengthMaximum),
            let manifest = try? ManifestCodec.decode(content), !manifest.isRejected,
            case .same = manifest.header.resource.verdict(on: resource)
        else { return }
        found.stated += manifest.header.resource.digests
        found.claims += (manifest.durable + manifest.pending).settled().compactMap { claim in
            let offset = claim.offset + range.lowerBound - bytes.lowerBound
            let end = offset + claim.length
            let isWithinBlock = offset >= 0 && end <= BlockLayout.blockEnd(after: max(offset, 0))
            // Bytes with a mark are of a source of which only samples were compared.
            guard claim.mark == 0, isWithinBlock, end <= Int64(bytes.count) else { return nil }
            // The digest that was stated for them is not compared yet, and only their own task has it.
            guard !manifest.contents.contains(where: { $0.range?.overlaps(claim.range) == true }) else { return nil }
            return Claim(offset: offset, length: claim.length, crc: claim.crc)
        }
    }

    /// Adds what the record of a complete piece stands for. It has one checksum, so the piece is read.
    private func add(
        fromRecordAt path: String, _ piece: RangePiece, to bytes: Range<Int64>, _ plan: SharedFilePlan,
        _ found: inout Found
    ) throws {
        let range = plan.division.range(of: piece)
        guard bytes.contains(range.lowerBound), range.upperBound <= bytes.upperBound,
            let record = try? self.record(at: path, plan),
            plan.division.accepts(record, of: piece, plan.resource, hasDigest: !plan.digests.isEmpty)
        else { return }
        let file = try self.window(spanning: plan).openData(in: self.storage, .read)
        defer { file.close() }
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Int(BlockLayout.blockLength), alignment: 4096)
        defer { buffer.deallocate() }
        var (claims, crc) = ([Claim](), CRC32())
        var offset = range.lowerBound - bytes.lowerBound
        let end = range.upperBound - bytes.lowerBound
        while offset < end {
            let length = min(BlockLayout.blockEnd(after: offset), end) - offset
            let block = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(length)))
            guard try file.readFully(into: block, at: bytes.lowerBound + offset) == block.count else { return }
            var part = CRC32()
            part.update(UnsafeRawBufferPointer(block))
            claims.append(Claim(offset: offset, length: length, crc: part))
            crc.append(part, length: length)
            offset += length
        }
        guard crc == record.crc else { return }
        found.claims += claims
        found.stated += record.resource.digests
    }
}
