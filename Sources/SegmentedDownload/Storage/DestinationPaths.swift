/// The paths of a destination, and of the part and manifest that exist beside it until the download is complete.
package struct DestinationPaths: Hashable, Sendable {
    package let directory: String
    package let name: String
    package let destination: String

    package init(directory: String, name: String) {
        self.directory = directory.isEmpty ? "." : directory
        self.name = name
        self.destination =
            switch self.directory {
            case ".": name
            case "/": "/\(name)"
            default: "\(directory)/\(name)"
            }
    }

    /// Splits a path at its last slash.
    package init(path: String) {
        // Searched by bytes: a slash with a combining accent is another `Character`, but a separator to the system.
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else {
            self.init(directory: ".", name: path)
            return
        }
        let directory = slash == path.startIndex ? "/" : String(path[..<slash])
        self.init(directory: directory, name: String(path[path.utf8.index(after: slash)...]))
    }

    package static let partSuffix = ".segdl-part"
    package static let manifestSuffix = ".segdl"
    package static let draftSuffix = ".segdl-new"

    /// The part: the file's data until it is complete.
    package var part: String { self.destination + Self.partSuffix }
    package var manifest: String { self.destination + Self.manifestSuffix }
    /// The manifest while it is being written, before it is renamed into place.
    package var manifestDraft: String { self.destination + Self.draftSuffix }
}
