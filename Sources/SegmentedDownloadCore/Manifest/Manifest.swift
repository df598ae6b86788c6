/// What is known of an interrupted download: the resource it is of, and which of its bytes are on disk.
package struct Manifest: Hashable, Sendable {
    /// The immutable part, written once.
    package struct Header: Hashable, Sendable {
        /// Random; every record's checksum includes it, so that no record of another manifest is believed.
        package var id: UInt64
        package var resource: RemoteResource
        package var completeLength: Int64
        /// The part file's device and inode, and the boot they were seen in.
        package var device: UInt64
        package var inode: UInt64
        package var bootID: String
        /// Where the bytes come from, without user names and passwords.
        package var sources: [String]
        /// `algorithm=hex`, as the user gave them: a resumed download is held to them too.
        package var digests: [String]
        /// What the caller wants to find again.
        package var label: Label

        package init(
            id: UInt64, resource: RemoteResource, completeLength: Int64, device: UInt64, inode: UInt64, bootID: String,
            sources: [String], digests: [String], label: Label = Label()
        ) {
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

    /// What the caller said of a download, for the run that finds it again; nothing in it is sent or believed.
    package struct Label: Hashable, Sendable {
        /// The caller's name for the download, if there was one.
        package var id: String?
        /// Above 0, up to 1.
        package var priority: Double
        package var userInfo: [String: String]
        /// ``DownloadOptions`` as JSON; nil for the defaults, and in manifests of versions 1 to 3.
        package var options: String?

        /// 64 KiB as it is written, without the options: a quarter of the longest header.
        package static let lengthMaximum = 64 << 10

        package init(
            id: String? = nil, priority: Double = 0.5, userInfo: [String: String] = [:], options: String? = nil
        ) {
            self.id = id
            self.priority = priority
            self.userInfo = userInfo
            self.options = options
        }

        /// How long it is written, the lengths before its texts included.
        package var length: Int {
            self.userInfo.reduce(self.id?.utf8.count ?? 0) { $0 + $1.key.utf8.count + $1.value.utf8.count + 8 }
        }
    }

    /// One entry of the log behind the header.
    package enum Record: Hashable, Sendable {
        /// These bytes are written; not yet synced.
        case claim(Claim)
        /// The first `claims` claims of the log were synced before this was written.
        case checkpoint(claims: Int64)
        /// As a checkpoint, and nothing was written after it: the part was last changed then, in nanoseconds since 1970.
        case pause(claims: Int64, modified: Int64)
        /// Claims that reach behind the offset are withdrawn: those bytes are being written anew.
        case forget(from: Int64)
        /// How far a digest had come: what of it is in this record, see ``DigestState``.
        case digest(DigestState.Piece)
        /// Syncing failed: what was not durable before is lost, whatever the page cache says.
        case syncFailed
        /// The complete file had another digest than it should: without a digest its bytes prove nothing any more.
        case rejected
    }

    package let header: Header
    /// Claims synced before they were recorded as durable.
    package internal(set) var durable: [Claim]
    /// Claims since: to be read back and checked before they are believed.
    package internal(set) var pending: [Claim]
    /// When the part was last changed, if the log ends with a pause. A part changed since was changed by others.
    package internal(set) var pausedModified: Int64?
    /// How far digests had come over bytes that have not been withdrawn since.
    package internal(set) var digestStates: [DigestState] = []
    /// Whether the bytes were once complete and had another digest than they should.
    package internal(set) var isRejected = false
    /// Whether a record speaks of more claims than there are: who wrote it has miscounted.
    package internal(set) var isOverstated = false
}
