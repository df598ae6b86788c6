import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The options for the destination of files.
struct DestinationOptions: FileOptionGroup {
    /// Several belong to the URLs in their order, as in curl.
    @Option(file: "output") var outputs: [FileEdit] = []
    @Option(file: "dir") var dir: FileEdit?
    @Option(file: "name-template") var nameTemplate: FileEdit?
    @Option(file: "continue") var continuation: FileEdit?
    @Option(file: "if-exists") var ifExists: FileEdit?

    @Flag(
        name: [.customShort("g"), .customLong("no-glob"), .customLong("globoff")],
        help: "Do not expand [1-9] and {a,b} in URLs.")
    var noGlob = false

    @Flag(file: "create-dirs") var createDirs: Bool?

    @Flag(help: "Add the files to the queue of the background service, and do not wait for them: see segdl add --help.")
    var background = false

    /// The last one.
    var output: FileEdit? { self.outputs.last }

    /// Whether the last `-o` names a file, and neither a directory nor several files by the values of a pattern.
    var namesOneFile: Bool { self.output.map { !$0.text.hasSuffix("/") && !$0.text.contains("#") } ?? false }

    /// Whether a file is written to standard output, as `-` or under a name of it.
    var writesStandardOutput: Bool {
        self.outputs.contains { ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].contains($0.text) }
    }

    mutating func validate() throws {
        switch self.output?.text {
        case _?
        where self.writesStandardOutput && self.continuation?.text == DownloadOptions.Continuation.must.rawValue:
            throw ValidationError("standard output (-o -) cannot be resumed, so it excludes --continue must")
        case let output? where !output.hasSuffix("/") && self.nameTemplate != nil:
            throw ValidationError("--output names the file, so --name-template has no effect")
        default: break
        }
    }
}

/// Paths of files, as text.
enum Path {
    static func join(_ directory: String, _ path: String) -> String {
        if path.hasPrefix("/") || directory == "." { return path }
        return directory.hasSuffix("/") ? directory + path : "\(directory)/\(path)"
    }

    /// The destination for the values of `-o` and `-d`. `-d` does not apply to an absolute path.
    ///
    /// If `-o` does not name a file, the template or the response does. A slash at the end decides that here, in the
    /// text: a `FilePath` has none.
    static func destination(output: String?, dir: String, name: NameTemplate?) -> DownloadRequest.Destination {
        guard let output else { return .directory(FilePath(dir), name: name) }
        guard output != "-" else { return .descriptor(STDOUT_FILENO) }
        let path = FilePath(Self.join(dir, output))
        return output.hasSuffix("/") ? .directory(path, name: name) : .file(path)
    }
}
