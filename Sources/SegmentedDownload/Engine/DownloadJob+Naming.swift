import HTTPTypes
import SegmentedDownloadCore
import Synchronization

/// Which name the file gets: from the request first, then from a response, until the name is settled.
extension DownloadJob {
    /// The caller's name for the download, or its number.
    var name: Download.ID { self.naming.id }

    var path: String { self.paths.destination }

    /// The destination as far as it is known.
    var paths: DestinationPaths { self.shared.withLock { $0.destination.paths } ?? self.firstPaths }

    /// The destination as far as it is known before any response.
    var firstPaths: DestinationPaths {
        if let known = self.shared.withLock({ $0.destination.first }) { return known }
        let paths = self.naming.paths
        self.shared.withLock { $0.destination.first = paths }
        return paths
    }

    /// The destination's numbered names, if the policy is to rename.
    var alternative: (@Sendable (Int) -> DestinationPaths?)? {
        guard self.request.ifExists == .rename else { return nil }
        let (naming, first) = (self.naming, self.firstPaths)
        return { naming.paths(from: first, number: $0) }
    }

    /// Whether the destination's name is settled.
    var hasName: Bool { self.shared.withLock { $0.destination.isSettled } }

    /// Records the media type that a response head states, and whether a digest follows in the trailers.
    ///
    /// - Returns: The file name that the response suggests; `nil` if the name is already settled.
    func record(from head: ResponseHead) -> String? {
        let digestFollows = AnnouncedDigests.follow(head)
        self.shared.withLock { shared in
            shared.mediaType = head.fields[values: .contentType].first?.lowercased()
            if digestFollows { shared.digestFollows = true }
        }
        guard self.shared.withLock({ !$0.destination.isSettled }) else { return nil }
        // Without `Content-Disposition` the name depends only on the URL and stays as it was.
        guard !head.fields[values: .contentDisposition].isEmpty else { return self.firstPaths.name }
        return self.naming.name(suggestedBy: head).value
    }

    /// Whether the server sends a web page although the URL names another kind of file; often a login or error page
    /// with status 200.
    var isUnexpectedPage: Bool { self.naming.isUnexpectedPage(mediaType: self.shared.withLock { $0.mediaType }) }

    /// Whether the server sends a web page that the URL does not name.
    var mayBeLogin: Bool { self.naming.mayBeLogin(mediaType: self.shared.withLock { $0.mediaType }) }

    /// Takes the name that the response suggests, unless the name is settled.
    ///
    /// - Returns: The finding at the new name, if there is a file or a part.
    func rename(to suggested: String?) async throws -> Surveyor.Finding? {
        guard let suggested, case .directory = self.request.destination,
            let renamed = self.shared.withLock({ $0.destination.renamed(to: suggested) })
        else { return nil }
        let (paths, found) = try await self.surveyChosen(from: renamed)
        let before = self.part
        let finding = try self.recordFound(found, at: paths)
        self.shared.withLock { shared in
            // A later survey, after a pause or failure, uses this name too.
            shared.destination.first = renamed
            shared.destination.settle()
        }
        try before?.leave(removesEmpty: !self.shared.withLock { $0.isNotedUnlocked })
        return finding.survey == .nothing ? nil : finding
    }
}
