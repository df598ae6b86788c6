import HTTPTypes
import SegmentedDownloadCore
import SystemPackage

/// Chooses the path and file name of a request's destination.
struct DestinationNaming: Sendable {
    let request: DownloadRequest
    /// The caller's name for the download, or its number.
    let id: Download.ID
    let storage: any Storage

    /// 9999: limits the search for a free name.
    private static let renameMax = 9999

    /// Extensions of programs that generate pages; `text/html` is expected from them.
    private static let pageExtensions: Set = [
        "html", "htm", "xhtml", "shtml", "php", "asp", "aspx", "jsp", "cgi", "pl", "py", "do",
    ]

    /// The destination as far as it is known before any response.
    var paths: DestinationPaths {
        switch self.request.destination {
        case .file, .stream, .descriptor: DestinationPaths(path: self.request.destination.text)
        case .directory(let directory, _):
            DestinationPaths(directory: directory.string, name: self.name(suggestedBy: nil).value)
        }
    }

    /// The file's name in its directory.
    ///
    /// - Parameter head: The response head; `nil` before there is a response.
    func name(suggestedBy head: ResponseHead?) -> SafeFilename {
        let suggested = SafeFilename.choose(
            contentDisposition: head?.fields[values: .contentDisposition].first, urlPath: self.request.source.path,
            host: self.request.source.origin.host)
        guard case .directory(_, let template?) = self.request.destination else { return suggested }
        return template.filename(suggested: suggested, source: self.request.source, id: self.id) ?? suggested
    }

    /// Creates the directory if the request allows it, and finds a free name if the policy is to rename.
    ///
    /// - Parameter number: The number of the first name to try; 0 is the name without a number.
    /// - Returns: The paths and the number of their name.
    func chosenPaths(from paths: DestinationPaths, number: Int) throws -> (paths: DestinationPaths, number: Int) {
        guard !paths.name.isEmpty else {
            throw DownloadError(.usage, "the destination \(paths.destination.printable) does not name a file")
        }
        if self.request.createsDirectories {
            try self.storage.makeDirectory(paths.directory)
        } else if try self.storage.target(of: paths.directory)?.kind != .directory {
            throw DownloadError(.file, "the directory \(paths.directory.printable) does not exist")
        }
        guard self.request.ifExists == .rename else { return (paths, number) }
        var number = number
        while let candidate = self.paths(from: paths, number: number) {
            try self.storage.removeAbandonedClaim(candidate)
            if try self.storage.status(of: candidate.destination) == nil { return (candidate, number) }
            number += 1
        }
        throw DownloadError(.exists, "\(paths.destination.printable) and \(Self.renameMax) numbered names all exist")
    }

    /// The destination with a number in its name, 0 for none; `nil` if the number is above the maximum.
    func paths(from paths: DestinationPaths, number: Int) -> DestinationPaths? {
        guard number <= Self.renameMax else { return nil }
        guard number > 0 else { return paths }
        return DestinationPaths(directory: paths.directory, name: Self.numbered(paths.name, number))
    }

    /// The name `name.1.ext`, as aria2 writes it.
    private static func numbered(_ name: String, _ number: Int) -> String {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "\(name).\(number)" }
        return "\(name[..<dot]).\(number)\(name[dot...])"
    }

    /// Whether the server sends a web page although the extension is that of another kind of file: of the name that the user
    /// chose, or else of the URL.
    func isUnexpectedPage(mediaType: String?) -> Bool {
        let named =
            switch self.request.destination {
            case .file: Self.fileExtension(of: self.paths.name)
            case .directory, .stream, .descriptor: self.pathExtension
            }
        guard mediaType?.hasPrefix("text/html") == true, let named else { return false }
        return !Self.pageExtensions.contains(named)
    }

    /// Whether a web page is sent that the URL does not name: it may be one that asks for a login.
    func mayBeLogin(mediaType: String?) -> Bool {
        mediaType?.hasPrefix("text/html") == true && !Self.pageExtensions.contains(self.pathExtension ?? "")
    }

    /// The extension of the URL's last path component.
    private var pathExtension: String? {
        Self.fileExtension(of: String(self.request.source.path.split(separator: "/").last ?? ""))
    }

    /// The lower-case extension of a name; `nil` if it has none.
    private static func fileExtension(of name: String) -> String? {
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return nil }
        return name[dot...].dropFirst().lowercased()
    }
}
