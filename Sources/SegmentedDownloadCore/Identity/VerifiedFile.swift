/// A complete file, and the evidence that it is the requested one.
///
/// Only ``judged(_:for:by:)`` makes one, and without one no download completes: the end of a download, a file that was there
/// already, the file of several tasks and the record of a finished file take it, and the result of a download is made of it. It
/// counts for the requirements that it was judged by, and for no others.
package struct VerifiedFile: Hashable, Sendable {
    /// What is known of a file's bytes.
    package struct Content: Hashable, Sendable {
        package let length: Int64
        /// Absent if the bytes were neither received nor read.
        package var crc: CRC32?
        /// Digests of the bytes in hexadecimal digits, all computed from them.
        package var hexes: [ExpectedDigest.Algorithm: String]
        /// Whether each piece of the file has its digest. Absent if none was compared.
        package var pieces: Pieces?

        package enum Pieces: Hashable, Sendable {
            case agree
            /// The first byte of the first piece that has another digest.
            case differ(at: Int64)
        }

        package init(
            length: Int64, crc: CRC32? = nil, hexes: [ExpectedDigest.Algorithm: String] = [:], pieces: Pieces? = nil
        ) {
            self.length = length
            self.crc = crc
            self.hexes = hexes
            self.pieces = pieces
            if let crc { self.hexes[.crc32] = crc.hex }
        }

    }

    /// What the file must be.
    package struct Requirements: Hashable, Sendable {
        /// The user's digests, and those of servers unless the user gave one that is at least as strong.
        package var digests: [ExpectedDigest]
        /// Whether the digests of its pieces were given.
        package var hasPieces: Bool
        /// Absent if none was given.
        package var length: Int64?

        package init(digests: [ExpectedDigest] = [], hasPieces: Bool = false, length: Int64? = nil) {
            self.digests = digests
            self.hasPieces = hasPieces
            self.length = length
        }

        /// Whether digests alone identify the file.
        package var hasDigests: Bool { !self.digests.isEmpty || self.hasPieces }
    }

    /// What shows, beside the requirements, that the bytes are the remote file's.
    package enum Proof: Hashable, Sendable {
        /// They were received for this request. The resource is the one that they are from.
        case received(RemoteResource, Evidence)
        /// They are as they were recorded when they were received, and a server has confirmed that version.
        case confirmed(RemoteResource)
        /// They are as a job recorded them for this request before they got their name.
        case recorded
        /// The required digests alone identify the file.
        case digests
        /// No proof: the policy keeps any existing file.
        case kept
    }

    package let content: Content
    package let requirements: Requirements
    package let proof: Proof

    private init(_ content: Content, _ requirements: Requirements, _ proof: Proof) {
        self.content = content
        self.requirements = requirements
        self.proof = proof
    }

    /// Verifies a file against everything that is required of it.
    ///
    /// - Throws: ``DownloadError`` with code `integrity` if the file is another one, `internal` if something was not compared.
    package static func judged(
        _ content: Content, for requirements: Requirements, by proof: Proof
    ) throws(DownloadError) -> VerifiedFile {
        for digest in requirements.digests {
            let name = digest.algorithm.rawValue
            guard let hex = content.hexes[digest.algorithm] else {
                throw DownloadError(.internal, "the file's \(name) was not compared")
            }
            guard hex == digest.hex else {
                let statement = digest.field.map { ", which the server states (\($0.printable))" } ?? ""
                throw DownloadError(
                    .integrity, "the file's \(name) is \(hex), not \(digest.hex)\(statement)",
                    remedy: statement.isEmpty ? .startOver : .giveOwnDigestOrStartOver)
            }
        }
        if requirements.hasPieces {
            switch content.pieces {
            case .agree: break
            case .differ(let offset):
                throw DownloadError(
                    .integrity,
                    "the file does not have the digests of its pieces; the first that differs begins at byte \(offset)",
                    remedy: .startOver)
            case nil: throw DownloadError(.internal, "the digests of the file's pieces were not compared")
            }
        }
        if let length = requirements.length, length != content.length {
            throw DownloadError(.integrity, "the file has \(content.length) bytes, expected \(length)")
        }
        switch proof {
        case .received(let resource, _), .confirmed(let resource):
            if let length = resource.completeLength, length != content.length {
                throw DownloadError(.integrity, "the file has \(content.length) bytes, but the server's has \(length)")
            }
            // A part cannot be compared with digests of the whole file. A digest of the part that the user gave decides.
            if resource.isPart, !requirements.hasDigests, let (one, other) = resource.conflictInDigests {
                throw DownloadError(
                    .integrity, "the server states that the whole file has \(one), and \(other)", remedy: .startOver)
            }
        case .digests where !requirements.hasDigests:
            throw DownloadError(.internal, "no digest was compared")
        case .recorded, .digests, .kept: break
        }
        return VerifiedFile(content, requirements, proof)
    }

    package var length: Int64 { self.content.length }
    package var crc: CRC32? { self.content.crc }

    /// Whether the file was at the destination before, so that nothing was fetched.
    package var wasThere: Bool {
        if case .received = self.proof { false } else { true }
    }
}
