import SegmentedDownloadCore
public import SystemPackage

extension DownloadClient {
    /// Compares a partial file of another program with the server's file. Nothing is changed.
    ///
    /// The control files of aria2 (`NAME.aria2`) and axel (`NAME.st`) beside the file are read. Without one, all bytes that
    /// are no holes count as there. Runs of zeros are compared too. If one of them differs in any place, all count as
    /// missing.
    ///
    /// - Parameters:
    ///   - path: The path of the partial file, or of its control file.
    ///   - request: The request that will complete the file. Its first source is asked. It is not repeated for mirrors.
    /// - Throws: ``DownloadError``, among them `exists` if the file belongs to another one or is in use, `integrity` if its
    ///   control file is damaged, `protocol` if the server does not support ranges or does not state the length.
    public func adoption(of path: FilePath, for request: DownloadRequest) async throws(DownloadError) -> Adoption {
        let path = try path.text
        let storage = self.storage
        let part = try await EngineThreads.aside { () throws(DownloadError) in
            do {
                return try ForeignPart(at: path, in: storage)
            } catch {
                throw DownloadError(wrapping: error)
            }
        }
        do {
            let remote = try await self.probe(request)
            guard let resource = remote.resource, let length = remote.length else {
                throw DownloadError(
                    .protocol, "\(remote.source) does not state its length, so that nothing can be resumed",
                    hint: Self.anew)
            }
            guard length > 0 else {
                throw DownloadError(.exists, "\(remote.source) is empty: there is nothing to complete")
            }
            guard resource.contentEncoding == nil else {
                throw DownloadError(
                    .protocol,
                    "\(remote.source) is sent with a content coding, so that its bytes differ from the file's",
                    hint: Self.anew)
            }
            guard remote.supportsRanges else {
                throw DownloadError(
                    .protocol, "\(request.source.host) does not support ranges, so that nothing can be compared",
                    hint: Self.anew)
            }
            return try await self.adoption(of: part, resource, length: length, for: request)
        } catch {
            part.file.close()
            throw DownloadError(wrapping: error)
        }
    }

    private static let anew = "The partial file stays as it is. To fetch the file anew, choose another name"

    private func adoption(
        of part: ForeignPart, _ resource: RemoteResource, length: Int64, for request: DownloadRequest
    ) async throws -> Adoption {
        let interruption = Latch()
        let content = try await withTaskCancellationHandler {
            try await EngineThreads.aside { () async throws(DownloadError) in
                do {
                    return try part.content(of: length, unless: interruption)
                } catch {
                    throw DownloadError(wrapping: error)
                }
            }
        } onCancel: {
            interruption.raise()
        }
        let comparison = PlaceComparison(
            client: self, request: request, follower: try self.follower(of: request), resource: resource,
            file: part.file)
        var generator = SplitMix64(seed: .random(in: .min ... .max))
        var places: [AdoptionVerdict.Place] = []
        var kept = content.runs
        // Where damage was found there may be more. What is kept is then compared once more, at other places.
        for round in 1...2 where !kept.isEmpty {
            let zerosKept = kept.subtracting(content.zeros.complement(in: length))
            let chosen = AdoptionPlaces(in: kept, zeros: zerosKept, using: &generator)
            let compared = try await comparison.compare(chosen.places)
            places += compared
            let verdict = AdoptionVerdict(
                runs: kept, zeros: zerosKept, unstated: content.unstated, places: compared)
            switch verdict {
            case .foreign: throw Self.foreign(part, places, of: request)
            case .kept(let agreeing): kept = agreeing
            }
            guard compared.contains(where: { !$0.agrees }) else { break }
            if round == 2, request.digests.isEmpty { throw Self.damaged(part, places) }
        }
        return Adoption(
            part, of: resource, length: length, for: request, present: content.runs, kept: kept, places: places)
    }

    private static func foreign(
        _ part: ForeignPart, _ places: [AdoptionVerdict.Place], of request: DownloadRequest
    ) -> DownloadError {
        let differing = places.filter { !$0.agrees }
        let first = differing.first.map { ", the first at byte \($0.range.lowerBound)" } ?? ""
        return DownloadError(
            .exists,
            "\(part.path.printable) is not a part of \(request.source): \(differing.count) of \(places.count) compared places differ\(first)",
            hint: Self.anew)
    }

    private static func damaged(_ part: ForeignPart, _ places: [AdoptionVerdict.Place]) -> DownloadError {
        DownloadError(
            .integrity,
            "\(part.path.printable) is damaged in more than one place: \(places.count { !$0.agrees }) of \(places.count) compared places differ. It stays as it is",
            remedy: .giveDigest)
    }
}
