import SegmentedDownload

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The destinations of another program that are symbolic links.
///
/// curl, wget and aria2 write to the file that a link leads to, and the link stays. segdl writes beside a destination and
/// renames, which would replace the link. So the link's target becomes the destination.
struct LinkedDestinations {
    private let program: Program
    private let directory: String
    private let policy: String

    /// - Parameters:
    ///   - options: segdl's options, the last of each kind of which applies.
    ///   - policy: The value of `--if-exists` without such an option.
    init(_ program: Program, options: [String], default policy: String) {
        func value(_ name: String) -> String? {
            options.last { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
        }
        self.program = program
        self.directory = HomePath.expanded(value("--dir") ?? ".", isDirectory: true) ?? "."
        self.policy = value("--if-exists") ?? policy
    }

    /// The absolute path of the file that a destination leads to if it is a link; otherwise the destination.
    ///
    /// The target need not exist. A link to a FIFO or a device is not resolved, nor is one to an existing file if the new
    /// file gets a numbered name beside it.
    ///
    /// - Throws: ``CompatibilityOptions/Refusal`` if the link cannot be followed: it may be part of a loop, or of another
    ///   user in a directory in which the system does not follow such links.
    func target(of path: String) throws(CompatibilityOptions.Refusal) -> String {
        let path = HomePath.expanded(path) ?? path
        var place = Path.join(self.directory, path)
        guard Self.linkText(of: place) != nil, !Self.isStream(place) else { return path }
        if FileFacts(place, followsLinks: true) != nil {
            // The file that the link leads to exists.
            guard self.policy != "rename" else { return path }
        } else {
            guard errno == ENOENT else {
                throw self.program.refusal(
                    "destination \(path.shown)", "The link cannot be followed: \(String(cString: strerror(errno)))")
            }
            // With --no-clobber, curl numbers the file also in this case.
            guard self.policy != "rename" || self.program.name != "curl" else { return path }
        }
        // 40: the kernel follows no more links either.
        for _ in 1...40 {
            guard let text = Self.linkText(of: place) else { break }
            place = Path.join(DestinationPaths(path: place).directory, text)
            guard !Self.isStream(place) else { return place }
        }
        if let facts = FileFacts(place, followsLinks: true), facts.isPipe || facts.isCharacterDevice { return path }
        return Self.absolute(place)
    }

    /// Without a slash at the end, which would make it the directory of a file.
    private static func absolute(_ path: String) -> String {
        let path = String(path.reversed().drop { $0 == "/" }.reversed())
        return path.hasPrefix("/") ? path : Path.join(FileManager.default.currentDirectoryPath, path)
    }

    private static func isStream(_ path: String) -> Bool { path.hasPrefix("/dev/") || path.hasPrefix("/proc/") }

    /// The text of a symbolic link; nil if the path is none.
    private static func linkText(of path: String) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink(path, &buffer, buffer.count)
        guard count > 0 else { return nil }
        return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
