/// The state of an interrupted download: its resource, and which of its bytes are on disk.
package struct Manifest: Hashable, Sendable {
    /// What the manifest begins with. When it is read, ``resource`` also has the digests that the log states.
    package struct Header: Hashable, Sendable {
        /// Random. Every record's checksum includes it, so that records of another manifest are rejected.
        package var id: UInt64
        package var resource: RemoteResource
        package var completeLength: Int64
        /// The part file's device and inode, and the ID of the boot in which they were read.
        package var device: UInt64
        package var inode: UInt64
        package var bootID: String
        /// The URLs of the sources, without user names and passwords.
        package var sources: [String]
        /// `algorithm=hex`, as the user gave them. A resumed download is verified against them too. Those that servers stated
        /// are in ``resource``.
        package var digests: [String]
        /// The digests of the file's pieces, as the user gave them.
        package var pieces: PieceDigests?
        /// What the request selects the representation with; nil in manifests of versions 1 to 5.
        package var selection: RequestSelection?
        /// The caller's label of the download.
        package var label: Label

        package init(
            id: UInt64, resource: RemoteResource, completeLength: Int64, device: UInt64, inode: UInt64, bootID: String,
            sources: [String], digests: [String], label: Label = Label(), pieces: PieceDigests? = nil,
            selection: RequestSelection? = nil
        ) {
            self.pieces = pieces
            self.selection = selection
            self.id = id
            self.resource = resource
            self.completeLength = completeLength
            self.device = device
            self.inode = inode
            self.bootID = bootID
            self.sources = sources
            self.digests = digests
            self.label = label
        }
    }

    /// Values that the caller attached to a download, for the run that resumes it. They are not sent to servers and do
    /// not affect which bytes are trusted.
    package struct Label: Hashable, Sendable {
        /// The caller's name for the download, if it has one.
        package var id: String?
        /// Above 0, up to 1.
        package var priority: Double
        package var userInfo: [String: String]
        /// ``DownloadOptions`` as JSON; nil for the defaults, and in manifests of versions 1 to 3.
        package var options: String?
        /// The part of the remote file that is the resource; nil for the whole. Not in ``options``, which a version that lacks an
        /// option reads without it: the whole file would be fetched into the part's place.
        package var part: DownloadOptions.Part?

        /// 64 KiB as it is written, without the options: a quarter of the longest header.
        package static let lengthMaximum = 64 << 10

        package init(
            id: String? = nil, priority: Double = 0.5, userInfo: [String: String] = [:], options: String? = nil,
            part: DownloadOptions.Part? = nil
        ) {
            self.id = id
            self.priority = priority
            self.userInfo = userInfo
            self.options = options
            self.part = part
        }

        /// The encoded length of the texts in bytes, including their length prefixes.
        package var length: Int {
            self.userInfo.reduce(self.id?.utf8.count ?? 0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 8 }
        }
    }

    /// An entry of the log that follows the header.
    package enum Record: Hashable, Sendable {
        /// These bytes are written, but not yet synced.
        case claim(Claim)
        /// The first `claims` claims of the log were synced before this record was written.
        case checkpoint(claims: Int64)
        /// Like a checkpoint, and nothing was written afterwards. `modified` is the part's modification time in
        /// nanoseconds since 1970.
        case pause(claims: Int64, modified: Int64)
        /// The claims that end after the offset are withdrawn, because those bytes are written anew.
        case forget(from: Int64)
        /// A piece of a digest's state, see ``DigestState``.
        case digest(DigestState.Piece)
        /// A sync failed. Bytes that were not durable before are considered lost, even if the page cache still returns
        /// them.
        case syncFailed
        /// A piece of what a response stated after the header was written, see ``StatedDigest/Piece``.
        case stated(StatedDigest.Piece)
        /// The complete file did not match its digest. Without a digest, its bytes are no longer trusted.
        case rejected
        /// The part belongs to another file than the one that its name was needed for, and was renamed. It is deleted with
        /// that file's completion. The last record, because a run that resumes the part writes the manifest anew.
        case setAside
    }

    package internal(set) var header: Header
    /// The claims that a checkpoint covers.
    package internal(set) var durable: [Claim]
    /// The claims after the last checkpoint. They are read back and checked before they are trusted.
    package internal(set) var pending: [Claim]
    /// The part's modification time, if the log ends with a pause, or with one before ``Record/setAside``. A later one means
    /// that another process changed the part.
    package internal(set) var pausedModified: Int64?
    /// The states of digests over bytes that were not withdrawn afterwards.
    package internal(set) var digestStates: [DigestState] = []
    /// The digests that responses stated for ranges of bytes, and that were not verified when the bytes were claimed.
    package internal(set) var contents: [StatedDigest] = []
    /// Whether the complete file once did not match its digest.
    package internal(set) var isRejected = false
    /// Whether the log ends with ``Record/setAside``.
    package internal(set) var isSetAside = false
    /// Whether a checkpoint covers more claims than the log contains, which no correct writer produces.
    package internal(set) var isOverstated = false

    /// Adds what the log says that a response stated.
    mutating func add(_ stated: StatedDigest) {
        if stated.range == nil {
            self.header.resource.state([stated.digest])
        } else if !self.contents.contains(stated) {
            self.contents.append(stated)
        }
    }
}
