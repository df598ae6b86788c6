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
        let claims = try self.claims(of: window.range, of: shard, plan, as: current)
        let storage = WindowStorage(window, in: self.storage)
        let header = Manifest.Header(
            id: id, resource: resource, completeLength: window.length, device: 0, inode: 0, bootID: "",
            sources: task.recordedSources(reference: .first), digests: [], label: task.label(inheriting: nil))
        let part = PartialFile(
            paths: paths, file: try PartialFile.createFile(paths, in: storage, noteUnlocked: {}), storage: storage,
            header: header, claims: claims)
        do throws(StorageError) {
            try await part.writeManifest(durableCount: 0)
        } catch {
            try? part.discard()
            throw error
        }
        part.close()
    }

    /// What manifests and records claim of bytes of a task's range, ordered and disjoint, counted from the first of the bytes.
    private func claims(
        of bytes: Range<Int64>, of shard: Shard, _ plan: SharedFilePlan, as current: RemoteResource
    ) throws -> [Claim] {
        let range = plan.division.range(of: shard)
        var found = self.claims(
            in: self.paths(of: shard).manifest, of: plan.resource(of: range, as: current), range, to: bytes)
        for file in try self.names().compactMap({ PieceFile($0) }) where file.piece.shard == shard {
            guard file.piece.index < plan.division.pieces(of: shard).count else { continue }
            let range = plan.division.range(of: file.piece)
            let path = "\(self.directory)/\(file.name)"
            switch file.kind {
            case .manifest: found += self.claims(in: path, of: plan.resource(of: range, as: current), range, to: bytes)
            case .record: found += try self.claims(ofRecordAt: path, file.piece, to: bytes, plan)
            case .other: break
            }
        }
        var (claims, reached) = ([Claim](), Int64(0))
        for claim in found.sorted(by: { $0.offset < $1.offset }) where claim.offset >= reached {
            claims.append(claim)
            reached = claim.range.upperBound
        }
        return claims
    }

    /// The claims of a manifest.
    ///
    /// - Parameters:
    ///   - resource: What the manifest must be of.
    ///   - range: The bytes that the manifest is for.
    ///   - bytes: The bytes whose claims are wanted.
    private func claims(
        in path: String, of resource: RemoteResource?, _ range: Range<Int64>, to bytes: Range<Int64>
    ) -> [Claim] {
        guard let resource, let content = try? self.job.contents(of: path, Surveyor.manifestLengthMaximum),
            let manifest = try? ManifestCodec.decode(content), !manifest.isRejected,
            case .same = manifest.header.resource.verdict(on: resource)
        else { return [] }
        return (manifest.durable + manifest.pending).settled().compactMap { claim in
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

    /// The claims that the record of a complete piece stands for. It has one checksum, so the piece is read.
    private func claims(
        ofRecordAt path: String, _ piece: RangePiece, to bytes: Range<Int64>, _ plan: SharedFilePlan
    ) throws -> [Claim] {
        let range = plan.division.range(of: piece)
        guard bytes.contains(range.lowerBound), range.upperBound <= bytes.upperBound,
            let record = try? self.record(at: path, plan),
            plan.division.accepts(record, of: piece, plan.resource, hasDigest: !plan.digests.isEmpty)
        else { return [] }
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
            guard try file.readFully(into: block, at: bytes.lowerBound + offset) == block.count else { return [] }
            var part = CRC32()
            part.update(UnsafeRawBufferPointer(block))
            claims.append(Claim(offset: offset, length: length, crc: part))
            crc.append(part, length: length)
            offset += length
        }
        return crc == record.crc ? claims : []
    }
}
