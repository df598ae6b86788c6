import Foundation
import Logging
import SegmentedDownload
import ServiceLifecycle

/// The list of unfinished downloads, as a file in the directory.
///
/// The library's manifests list the downloads whose origin has answered, and they are restored from there. This file
/// also lists those that still wait, so that every download the server accepted is resumed after a restart.
actor DownloadQueue: Service {
    private let service: DownloadService
    private let path: String
    private let logger: Logger

    init(of service: DownloadService, in directory: FilePath, logger: Logger) {
        self.service = service
        self.path = directory.appending(".queue.json").string
        self.logger = logger
    }

    /// Adds what earlier runs left in the directory, and resumes it.
    func restore() async throws {
        let group = try await self.service.downloads()
        let found = try await group.restore(.paused) { request in
            // A download of another program may have no UUID, and a copied manifest has the UUID of another download.
            guard let id = request.id, Download.ID(uuid: id.rawValue) == id, group.download(id: id) == nil else {
                request.id = .random()
                return
            }
        }
        for omission in found.omissions {
            self.logger.warning(
                "A partial download was not restored",
                metadata: ["path": "\(omission.path)", "error": "\(omission.error)"])
        }
        // Restored in state `paused`, because only then their progress is known before their turn comes.
        for download in found.downloads { download.resume() }
        for state in try self.load() {
            do {
                // Adds nothing if the download was restored from its manifest: the ids are equal.
                try group.add(resuming: state)
            } catch {
                self.logger.warning(
                    "A queued download was not restored",
                    metadata: ["id": "\(state.id)", "path": "\(state.path)", "error": "\(error)"])
            }
        }
        try await self.save()
    }

    /// Writes the list. It survives a kill of the server once this returns.
    ///
    /// - Throws: ``DownloadError`` with code `file` if it cannot be written, `cancelled` if the service has ended.
    func save() async throws {
        let group = try await self.service.downloads()
        // Without the proxied ones, which end with the server. No suspension from here on: a later list is never replaced by an earlier one.
        let states = group.downloads.filter { !$0.state.isOver && !$0.isStream }.map(\.resumeState)
        let data = try JSONEncoder().encode(states)
        let draft = self.path + ".new"
        // Only for the owner, like the library's manifests: the query of a URL is often a signature.
        guard FileManager.default.createFile(atPath: draft, contents: data, attributes: [.posixPermissions: 0o600]),
            rename(draft, self.path) == 0
        else { throw DownloadError(.file, "the queue cannot be written to \(self.path)", errno: errno) }
    }

    /// Removes downloads from the list when they are over.
    func run() async throws {
        let group = try await self.service.downloads()
        for await event in group.events.cancelOnGracefulShutdown() {
            guard case .removed = event else { continue }
            do {
                try await self.save()
            } catch {
                // Harmless: a download that is listed although its file is complete fetches nothing.
                self.logger.error("The queue was not saved", metadata: ["error": "\(error)"])
            }
        }
    }

    private func load() throws -> [ResumeState] {
        guard FileManager.default.fileExists(atPath: self.path) else { return [] }
        return try JSONDecoder().decode([ResumeState].self, from: Data(contentsOf: URL(fileURLWithPath: self.path)))
    }
}

extension Download.ID {
    /// A new identifier: a UUID in lower case.
    static func random() -> Self { Self(rawValue: UUID().uuidString.lowercased()) }

    /// The identifier with a given UUID in any case; `nil` if the text is not a UUID.
    init?(uuid text: String) {
        guard let uuid = UUID(uuidString: text) else { return nil }
        self.init(rawValue: uuid.uuidString.lowercased())
    }
}
