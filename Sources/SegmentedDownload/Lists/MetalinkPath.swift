import SegmentedDownloadCore

/// Where a metalink's file goes below the directory for files (RFC 5854 §4.1.2.1).
///
/// What could lead out of the directory refuses the document: no honest one has it. What is only unwise in a name, such as a
/// leading dot or a character that nobody sees, is changed as in any name that a server suggests.
struct MetalinkPath: Hashable, Sendable {
    /// Why a text is none, as what follows "it".
    struct Refusal: Error, Hashable {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    /// Components with `/` between them, each of them safe.
    let text: String

    /// 1 KiB: with a directory before it a path still fits into the 4096 bytes that Linux takes.
    static let lengthMax = 1 << 10
    /// More levels than a tree of files for people has.
    static let componentsMax = 32

    init(_ name: String) throws(Refusal) {
        guard !name.isEmpty else { throw Refusal("is empty") }
        guard name.utf8.count <= Self.lengthMax else {
            throw Refusal("has \(name.utf8.count) bytes; \(Self.lengthMax) are allowed")
        }
        guard !name.utf8.contains(UInt8(ascii: "\\")) else { throw Refusal("holds a backslash") }
        let start = Array(name.utf8.prefix(2))
        guard start[0] != UInt8(ascii: "/") else { throw Refusal("is absolute") }
        guard !(start.count == 2 && start[1] == UInt8(ascii: ":") && start[0].isLetter) else {
            throw Refusal("begins with a drive's letter")
        }
        // By bytes: a slash with an accent on it is another `Character`.
        let components = name.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard components.count <= Self.componentsMax else {
            throw Refusal("has \(components.count) components; \(Self.componentsMax) are allowed")
        }
        var safe: [String] = []
        for component in components.map({ String(Substring($0)) }) {
            guard !component.isEmpty else { throw Refusal("has an empty component") }
            guard component != ".", component != ".." else { throw Refusal("has the component \"\(component)\"") }
            guard let name = SafeFilename(untrusted: component) else {
                throw Refusal("has a component that is no name")
            }
            safe.append(name.value)
        }
        self.text = safe.joined(separator: "/")
    }
}

extension UInt8 {
    fileprivate var isLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }
}
