public import HTTPTypes
public import SegmentedDownloadCore
public import SystemPackage

/// What to fetch, where to put it, and how.
@dynamicMemberLookup
public struct DownloadRequest: Hashable, Sendable {
    /// Where the file goes.
    ///
    /// A `FilePath` has no slash at its end, so `.file("isos/")` is a file called `isos`.
    public enum Destination: Hashable, Sendable {
        /// This path. Missing directories are created.
        ///
        /// - Warning: The path is used as it is, also if it is absolute or contains `..`. For a name that comes from a user, use
        ///   ``directory(_:name:)`` with a ``NameTemplate``, which cannot leave the directory.
        case file(FilePath)
        /// This directory. The file's name is the one that the response suggests (`Content-Disposition`, else the URL's last
        /// component), or one made by a template.
        case directory(FilePath, name: NameTemplate? = nil)
        /// This open file descriptor, such as standard output. Bytes are written in order while segments are fetched in parallel,
        /// at most 64 MiB ahead of the reader. Bytes already written cannot be retracted, so the download has one source and
        /// cannot be paused and resumed. The descriptor stays open.
        case descriptor(Int32)
        /// This FIFO or character device, which exists. Bytes are written as to a ``descriptor(_:)``. It is opened for the first
        /// byte, a FIFO once another process reads it, and closed when the download has ended.
        case stream(FilePath)
    }

    /// The file's URL. Fields and credentials are sent to its origin only.
    public var source: SourceURL
    /// Other sources of the same bytes. They are asked in this order if a source fails, and used in parallel once they are proven
    /// to have the same bytes. At most 200 different sources are used.
    public var mirrors: [SourceURL] = []
    /// Where the file goes. Relative paths begin in the group's directory.
    public var destination: Destination
    /// The caller's name for the download, unique in its group. Nil: its number.
    public var id: Download.ID?
    /// The caller's own keys and values. They are stored in the manifest and repeated in events, and never sent. At most 64 KiB
    /// together with ``id``.
    public var userInfo: [String: String] = [:]
    /// Fields sent to the source's own origin, in order, and to no other after a redirect. Fields that frame the request or select
    /// a part of the file, such as `Range`, are refused: see ``validate()``.
    public var fields = HTTPFields()
    /// Credentials for the source's own origin. Those in a source's URL take precedence.
    public var credentials: Credentials?
    /// How it is fetched. Each option can also be read and set on the request itself: `request.segments = .exactly(4)`.
    public var options = DownloadOptions()

    /// The digests of the file's pieces. It must have them unless one of its ``DownloadOptions/digests`` is collision-resistant
    /// (SHA-256 or SHA-512). The complete file is read to verify them, so without digests of the whole file they are refused for a
    /// ``DownloadOptions/part``, a descriptor and a stream, see ``validate()``. The manifest records them.
    public var pieceDigests: Metalink.PieceDigests?

    /// Sources that a list from a server named. Credentials and fields are not sent to them.
    package var foreignSources: Set<SourceURL> = []
    /// How many bytes are fetched ahead of the reader of a descriptor or stream.
    package var windowLength = InOrderReader.windowLength
    /// The window of a shared file that the destination's part is; nil for a file of its own. It is not stored.
    package var window: FileWindow?
    /// What the file must be, because other tasks fetch other ranges of the same version; nil if any version will do. It is not
    /// stored.
    package var requiredResource: RemoteResource?
    /// Whether the request is to resume the part at its destination, from whichever URL the part is. It is not stored.
    package var resumesPart = false
    /// What a job's task knows and records of the file, in case the file system has no extended attributes. It is not stored.
    package var placing: PlacingRecord?

    public init(_ source: SourceURL, to destination: Destination = .directory(".")) {
        self.source = source
        self.destination = destination
    }

    /// All different sources, in the order in which they are tried.
    var sources: [SourceURL] {
        Array(
            ([self.source] + self.mirrors).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
                .prefix(Self.sourcesMax))
    }

    /// 200: a claim stores the number of its source in one byte.
    static let sourcesMax = 200

    public subscript<Value>(dynamicMember path: WritableKeyPath<DownloadOptions, Value>) -> Value {
        get { self.options[keyPath: path] }
        set { self.options[keyPath: path] = newValue }
    }
}
