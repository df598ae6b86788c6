import SegmentedDownloadCore

/// Targets are substrings of the fields, each at most once; unrelated links do not change the result.
enum LinkFieldsProperties {
    /// The input: a field value per line.
    static func check(_ bytes: [UInt8]) throws(Violation) {
        let values = Reference.split(bytes, at: "\n").map { String(decoding: $0, as: UTF8.self) }
        let links = LinkFields(fieldValues: values)
        for target in links.duplicates + [links.metalink, links.next].compactMap({ $0 }) {
            try require(!target.isEmpty, "\(values) has an empty target")
            try require(
                target.utf8.allSatisfy { $0 > 0x20 && $0 != 0x3E && $0 != 0x7F },
                "\(target.debugDescription) is not a target")
        }
        try require(Set(links.duplicates).count == links.duplicates.count, "\(values) has a duplicate target twice")
        let others = ["", "<other>; rel=prev", "<other>; rel=\"duplicate", "other", "<other>;anchor=x;rel=duplicate"]
        for other in others {
            try require(
                LinkFields(fieldValues: [other] + values) == links, "\(other.debugDescription) changes \(values)")
        }
        let longer = LinkFields(fieldValues: values + [",<last>; pri=999999; REL=\"x Duplicate\"; y=\"\\\"\","])
        let isKnown = links.duplicates.contains("last")
        try require(
            longer.duplicates == links.duplicates + (isKnown ? [] : ["last"]),
            "\(values) and another link give \(longer.duplicates)")
    }
}
