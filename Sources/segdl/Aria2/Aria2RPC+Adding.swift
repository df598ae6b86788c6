import SegmentedDownload
import SegmentedDownloadService

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

extension Aria2RPC {
    func addURI(_ parameters: RPCParameters) async throws -> RPCValue {
        let texts = try parameters.strings(0)
        guard !texts.isEmpty else { throw RPCError("URI is not provided.") }
        // As in aria2, a URL that cannot be fetched is skipped if there are others.
        let urls = texts.compactMap { Self.url($0) }
        guard let url = urls.first else {
            let isMagnet = texts.contains { $0.lowercased().hasPrefix("magnet:") }
            throw RPCError(isMagnet ? "BitTorrent is not supported" : "No URI to download.")
        }
        let options = try Aria2Options(try parameters.objectIfAny(1), url: url)
        let description = Submission.Description(
            url: url, mirrors: Array(urls.dropFirst()), options: options.values, gid: options.gid)
        let ids = try await self.add([description], isPaused: options.isPaused, try Self.position(parameters))
        guard let id = ids.first else { throw RPCError("No URI to download.") }
        return .string(id.rawValue)
    }

    /// Adds the files of a metalink. It names them and their digests itself, so the options for these are ignored.
    func addMetalink(_ parameters: RPCParameters) async throws -> RPCValue {
        guard let data = Data(base64Encoded: try parameters.string(0), options: .ignoreUnknownCharacters),
            !data.isEmpty
        else { throw RPCError("Could not parse Metalink XML document.") }
        let given = try parameters.objectIfAny(1)
        guard given["select-file"]?.text?.isEmpty ?? true else {
            throw RPCError("select-file is not supported: all files of a metalink are fetched")
        }
        let ownNames: Set<String> = ["out", "checksum", "gid"]
        let options = try Aria2Options(given.filter { !ownNames.contains($0.key) }, url: nil)
        let descriptions = try Metalink([UInt8](data)).files.map { file in
            var values = options.values
            values["out"] = .one(file.path)
            if !file.digests.isEmpty { values["checksum"] = .several(file.digests.strongestFirst.map(\.description)) }
            return Submission.Description(
                url: file.sources[0].string, mirrors: file.sources.dropFirst().map(\.string), options: values,
                length: file.length, pieceDigests: file.requiredPieces)
        }
        let ids = try await self.add(descriptions, isPaused: options.isPaused, try Self.position(parameters))
        return .array(ids.map { .string($0.rawValue) })
    }

    /// The place among the waiting downloads; nil for the end.
    private static func position(_ parameters: RPCParameters) throws(RPCError) -> Int? {
        guard let position = try parameters.integerIfAny(2) else { return nil }
        guard position >= 0 else { throw RPCError("Position must be greater than or equal to 0.") }
        return position
    }

    private func add(
        _ files: [Submission.Description], isPaused: Bool, _ position: Int?
    ) async throws -> [QueueEntry.ID] {
        let submission = Submission(
            downloads: files.map { .described($0) }, paused: isPaused, first: position == 0)
        let ids = try await self.control.add(submission)
        guard let position, position > 0 else { return ids }
        for (index, id) in ids.enumerated() {
            // The download is added. It is no error if it has begun, so that it has no place any more.
            guard let entry = try? await self.control.queue.entry(id), Self.isWaiting(entry) else { continue }
            _ = try? await self.move(id, to: min(position, Int(Int32.max)) + index)
        }
        return ids
    }
}
