import SegmentedDownloadCore

/// Targets are parts of what was sent, each once; what does not concern a link does not change what is read of it.
enum LinkFieldsProperties {
    /// Lines: a field value each.
    static func check(_ bytes: [UInt8]) throws(Violation) {
        let values = Reference.split(bytes, at: "\n").map { String(decoding: $0, as: UTF8.self) }
        let links = LinkFields(fieldValues: values)
        for target in links.duplicates + (links.metalink.map { [$0] } ?? []) {
            try require(!target.isEmpty, "\(values) has an empty target")
            try require(
                target.utf8.allSatisfy { $0 > 0x20 && $0 != 0x3E && $0 != 0x7F },
                "\(target.debugDescription) is no target")
        }
        try require(Set(links.duplicates).count == links.duplicates.count, "\(values) names one twice")
        let others = ["", "<other>; rel=next", "<other>; rel=\"duplicate", "other", "<other>;anchor=x;rel=duplicate"]
        for other in others {
            try require(
                LinkFields(fieldValues: [other] + values) == links, "\(other.debugDescription) changes \(values)")
        }
        let longer = LinkFields(fieldValues: values + [",<last>; pri=999999; REL=\"x Duplicate\"; y=\"\\\"\","])
        let isKnown = links.duplicates.contains("last")
        try require(
            longer.duplicates == links.duplicates + (isKnown ? [] : ["last"]),
            "\(values) and one more is \(longer.duplicates)")
    }
}
