import SegmentedDownloadCore

/// The path of a list's file below the download directory (for metalinks, RFC 5854, section 4.1.2.1).
///
/// A path that leads out of the directory rejects the list. A name that is only unwise, such as one with a leading
/// dot or an invisible character, is sanitised like a name that a server suggests.
struct ListedPath: Hashable, Sendable {
    /// The reason for a rejection, as a clause that follows "it".
    struct Refusal: Error, Hashable {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    /// The sanitised components, separated by `/`.
    let text: String

    /// 1 KiB: together with a directory, the path fits into Linux's 4096 bytes.
    static let lengthMax = 1 << 10
    /// 32: deeper than any reasonable directory tree.
    static let componentsMax = 32

    init(_ name: String) throws(Refusal) {
        guard !name.isEmpty else { throw Refusal("is empty") }
        guard name.utf8.count <= Self.lengthMax else {
            throw Refusal("has \(name.utf8.count) bytes; \(Self.lengthMax) are allowed")
        }
        guard !name.utf8.contains(UInt8(ascii: "\\")) else { throw Refusal("contains a backslash") }
        let start = Array(name.utf8.prefix(2))
        guard start[0] != UInt8(ascii: "/") else { throw Refusal("is absolute") }
        guard !(start.count == 2 && start[1] == UInt8(ascii: ":") && start[0].isLetter) else {
            throw Refusal("begins with a drive letter")
        }
        // Split by bytes: a slash with a combining accent is another `Character`.
        let components = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard components.count <= Self.componentsMax else {
            throw Refusal("has \(components.count) components; \(Self.componentsMax) are allowed")
        }
        var safe: [String] = []
        for component in components.map({ String(Substring($0)) }) {
            guard !component.isEmpty else { throw Refusal("has an empty component") }
            guard component != ".", component != ".." else { throw Refusal("has the component \"\(component)\"") }
            guard let name = SafeFilename(untrusted: component) else {
                throw Refusal("has a component that is not a valid file name")
            }
            safe.append(name.value)
        }
        self.text = safe.joined(separator: "/")
    }
}

extension UInt8 {
    fileprivate var isLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }
}
