package import SegmentedDownloadCore

/// What the tasks of a shared file must agree on. The first task that begins writes it, and it is never changed.
///
/// It is stored as a manifest of the complete file without claims.
package struct SharedFilePlan: Hashable, Sendable {
    /// Random. It names the shared file, and identifies the finished one.
    package let id: UInt64
    package let division: FileDivision
    package let resource: RemoteResource
    /// The shared file's inode number.
    package let inode: UInt64
    /// What a manifest records of the request: its sources, the digests that it gives, and the options.
    let sources: [String]
    private let given: [ExpectedDigest]
    package let options: DownloadOptions
    /// What the first task's request selects the representation with; nil in plans of versions that stored nothing.
    let selection: RequestSelection?
    private let label: Manifest.Label

    private static let countKey = "segdl-tasks"
    private static let alignmentKey = "segdl-alignment"

    /// - Parameters:
    ///   - resource: The file, with the digests that the server states for it.
    ///   - request: The request for the complete file.
    init(
        id: UInt64, _ division: FileDivision, of resource: RemoteResource, _ request: DownloadRequest,
        selection: RequestSelection.Values = [:], inode: UInt64
    ) {
        self.id = id
        self.selection = RequestSelection(selection, salt: id)
        self.division = division
        self.resource = resource
        self.inode = inode
        self.sources = request.recordedSources(reference: .first)
        self.given = request.digests
        self.options = request.options
        var label = request.label(inheriting: nil)
        label.userInfo = [Self.countKey: "\(division.count)", Self.alignmentKey: "\(division.alignment)"]
        self.label = label
    }

    /// The digests that the file must have.
    package var digests: [ExpectedDigest] { self.digests(besides: []) }

    /// The digests that the file must have.
    ///
    /// - Parameters:
    ///   - others: Those that a task's request gives.
    ///   - stated: Those that the server has stated to the tasks.
    func digests(besides others: [ExpectedDigest], stated: [ExpectedDigest] = []) -> [ExpectedDigest] {
        Self.required(self.given + others.filter { !self.given.contains($0) }, self.resource.digests + stated)
    }

    /// The digests that the file must have, of those that requests give and those that the server states.
    private static func required(_ given: [ExpectedDigest], _ stated: [ExpectedDigest]) -> [ExpectedDigest] {
        var required = RequiredDigests(given)
        required.state(stated)
        return required.all
    }

    var encoded: [UInt8] {
        ManifestCodec.encode(
            Manifest.Header(
                id: self.id, resource: self.resource, completeLength: self.division.length, device: 0,
                inode: self.inode, bootID: "", sources: self.sources, digests: self.given.map(\.description),
                label: self.label, selection: self.selection))
    }

    /// Nil if the bytes are not a plan.
    init?(decoding bytes: [UInt8]) throws(ManifestCodec.Damage) {
        let manifest = try ManifestCodec.decode(bytes)
        let header = manifest.header
        guard let count = header.label.userInfo[Self.countKey].flatMap({ Int($0) }),
            let alignment = header.label.userInfo[Self.alignmentKey].flatMap({ Int64($0) }),
            let division = FileDivision(count: count, length: header.completeLength, alignment: alignment)
        else { return nil }
        self.id = header.id
        self.division = division
        self.resource = header.resource
        self.inode = header.inode
        self.sources = header.sources
        self.given = header.digests.compactMap { ExpectedDigest($0) }
        self.options = DownloadOptions(manifest)
        self.selection = header.selection
        self.label = header.label
    }

    /// The URL of the first source, safe to show.
    package var sourceDescription: String {
        let url = self.sources.first.map { RecordedSource(recorded: $0).url } ?? ""
        return (try? SourceURL(url).description) ?? SourceURL.withoutSecrets(url)
    }

    /// Throws unless a task may fetch its range of `current`, which the server has now.
    ///
    /// - Parameters:
    ///   - current: With the digests that the server states now.
    ///   - given: The digests of the task's request. If no validator proves the version, the task must state a digest that the
    ///     plan has: one of another request says nothing about what this one wants.
    ///   - selection: What the task's request selects the representation with.
    ///   - directory: Where the records of the tasks are.
    package func check(
        _ current: RemoteResource, given: [ExpectedDigest], selection: RequestSelection.Values = [:], directory: String
    ) throws(DownloadError) {
        let isStrong = self.resource.validator.isStrong
        if let other = self.selection?.contradiction(by: selection, hasStrongTag: isStrong) {
            throw Self.changed("this task's request is \(other)", directory: directory)
        }
        for digest in Self.required(given, current.digests) {
            guard let own = self.digests.first(where: { $0.algorithm == digest.algorithm && $0.hex != digest.hex })
            else { continue }
            throw Self.changed("the plan has \(own), and this task \(digest)", directory: directory)
        }
        let difference: String
        switch self.resource.verdict(on: current) {
        case .same: return
        case .unproven, .elsewhere(nil):
            guard !self.digests.contains(where: { (given + current.digests).contains($0) }) else { return }
            difference =
                self.resource.isSameResource(as: current)
                ? "no validator proves that it is the same version" : "this task gets it from another place"
        case .changed(let why), .elsewhere(let why?): difference = why
        }
        throw Self.changed(difference, directory: directory)
    }

    /// What a download of a range must find, for which the range is a file of its own; nil if nothing can prove that it is of the
    /// plan's version.
    ///
    /// - Parameter current: The file as the server has it now, the plan's.
    func resource(of range: Range<Int64>, as current: RemoteResource) -> RemoteResource? {
        guard case .same = self.resource.verdict(on: current), case .named(let name)? = current.locator else {
            return nil
        }
        let part = ResourcePart(DownloadOptions.Part(first: range.lowerBound, last: range.upperBound - 1))
        var resource = RemoteResource(
            completeLength: Int64(range.count), validator: current.validator.combined(with: self.resource.validator),
            contentEncoding: current.contentEncoding,
            locator: .named(ResourceName(requested: name.requested + part.suffix, target: name.target)),
            wholeLength: self.division.length)
        resource.state(self.resource.digests + current.digests)
        return resource
    }

    static func changed(_ difference: String, directory: String) -> DownloadError {
        DownloadError(
            .changed, "the tasks would fetch different files: \(difference)",
            hint: "To start over, stop all tasks, remove \(directory.printable), and run them again")
    }
}
