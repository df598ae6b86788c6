/// What a request leaves out because the server refuses requests with it, although it has the file.
///
/// Servers refuse optional fields instead of ignoring them, which RFC 9110 §14.2 and §12.5.3 allow for `Range` and
/// `Accept-Encoding`. An answer to a request without them is judged like one of a server that ignores them.
package struct OmittedFields: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// `If-Range`, `If-None-Match`, `If-Modified-Since` and `Cache-Control`. The validators of the answer are compared anyway.
    package static let conditions = OmittedFields(rawValue: 1 << 0)
    /// `Accept-Encoding`. An answer with a content coding is treated as one of a server that ignores the field.
    package static let coding = OmittedFields(rawValue: 1 << 1)
    /// The end of a range that is further away than ``rangeMax``, or absent. The answer has less than was asked for.
    package static let distantEnd = OmittedFields(rawValue: 1 << 2)
    /// `Range`. The answer is the whole file.
    package static let range = OmittedFields(rawValue: 1 << 3)

    /// Everything that a plain request does not have.
    package static let all: OmittedFields = [.conditions, .coding, .range]

    /// 64 MiB: the largest range that Hugging Face's servers were seen to accept of large files.
    package static let rangeMax: Int64 = 64 << 20

    /// The statuses with which servers refuse ranges that are too long.
    private static let ofLength: Set = [400, 403, 413, 416]

    /// What to leave out after a refusal of `request`, in this order; each is tried once, and added to what is left out already.
    package static func attempts(after status: Int, to request: RangeRequest) -> [OmittedFields] {
        var attempts: [OmittedFields] = []
        if request.isConditional { attempts.append(.conditions) }
        if status == 406 { attempts.append(.coding) }
        if request.isRanged, self.ofLength.contains(status), request.length ?? .max > self.rangeMax {
            attempts.append(.distantEnd)
        }
        if request.isRanged || status == 406 { attempts.append(.all) }
        return attempts
    }
}
