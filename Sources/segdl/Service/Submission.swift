import SegmentedDownload
import SegmentedDownloadService

/// The body of a request to add downloads.
struct Submission: Codable, Sendable {
    /// A file: what any client writes, or what the command writes.
    enum File: Codable, Sendable {
        /// A URL with options by their names on the command line, as in a list. Relative paths begin in the service's directory.
        case described(Description)
        /// A request with everything that the command has decided. Its form is this program's own.
        case request(PortableRequest)

        private enum CodingKeys: CodingKey { case request }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            if let request = try values.decodeIfPresent(PortableRequest.self, forKey: .request) {
                self = .request(request)
            } else {
                self = .described(try Description(from: decoder))
            }
        }

        func encode(to encoder: any Encoder) throws {
            switch self {
            case .described(let description): try description.encode(to: encoder)
            case .request(let request):
                var values = encoder.container(keyedBy: CodingKeys.self)
                try values.encode(request, forKey: .request)
            }
        }
    }

    struct Description: Codable, Hashable, Sendable {
        var url: String
        var mirrors: [String]?
        var options: [String: OptionValue]?
        /// The entry's ID, 16 hexadecimal digits. Absent: a random one.
        var gid: String?
        /// The length in bytes that the file must have.
        var length: Int64?
        /// The digests of the file's pieces, which it must have if there is no other digest.
        var pieceDigests: Metalink.PieceDigests?
    }

    /// The value of an option, or of one that may be given several times.
    enum OptionValue: Codable, Hashable, Sendable {
        case one(String)
        case several([String])

        var texts: [String] {
            switch self {
            case .one(let text): [text]
            case .several(let texts): texts
            }
        }

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let text = try? value.decode(String.self) {
                self = .one(text)
            } else if let flag = try? value.decode(Bool.self) {
                self = .one("\(flag)")
            } else if let number = try? value.decode(Int64.self) {
                self = .one("\(number)")
            } else {
                self = .several(try value.decode([String].self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var value = encoder.singleValueContainer()
            switch self {
            case .one(let text): try value.encode(text)
            case .several(let texts): try value.encode(texts)
            }
        }
    }

    /// The answer: the IDs of the new entries, in the order of the files.
    struct Answer: Codable, Hashable, Sendable {
        var ids: [String]
    }

    var downloads: [File]
    var paused: Bool?
    var first: Bool?
}

/// The body of a request that is about some entries.
struct EntrySelection: Codable, Hashable, Sendable {
    /// The words for the entries, see ``EntrySelector``.
    var ids: [String]?
    /// The absolute path of the directory from which relative paths among them are seen.
    var directory: String?
    /// Every entry to which the action applies.
    var all: Bool?
    /// With `cancel`: whether partial files are deleted.
    var delete: Bool?
    /// With `move`: the place in the queue, from 0.
    var to: Int?
    /// With `change`: options by their names on the command line.
    var options: [String: Submission.OptionValue]?

    /// The answer: the entries that were changed, and why others were not.
    struct Answer: Codable, Hashable, Sendable {
        var changed: [String]
        var errors: [String: EntryRecord.Failure]
    }
}
