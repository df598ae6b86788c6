import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Where files go, and what to do about what is there.
struct DestinationOptions: ParsableArguments {
    @Option(
        name: [.customShort("o", allowingJoined: true), .long, .customLong("out")],
        help: ArgumentHelp(
            "The file's path; DIR/ keeps its own name, - is standard output. (default: the name the server or the URL gives)",
            valueName: "FILE"))
    var output: String?

    @Option(
        name: [.customShort("d", allowingJoined: true), .long, .customShort("P", allowingJoined: true)],
        help: ArgumentHelp("The directory that files go to.", valueName: "DIR"))
    var dir = "."

    @Option(
        help: ArgumentHelp(
            "How files are named where -o names none: text with {name}, {ext}, {md5url}, {host} and {id}.",
            valueName: "TEXT"),
        transform: { try NameTemplate($0) })
    var nameTemplate: NameTemplate?

    @Option(
        name: [.customShort("c", allowingJoined: true), .customLong("continue")],
        help: ArgumentHelp(
            "Go on with what an earlier run left: if it is of use (also a bare -c), or fail, or begin anew.",
            valueName: "HOW"))
    var continuation = DownloadOptions.Continuation.auto

    @Option(
        help: ArgumentHelp(
            """
            What to do when the file exists. verify: succeed if it is the remote file; replace it if it has that one's length, \
            and segdl fetched it from another URL; else fail.
            """, valueName: "HOW"))
    var ifExists = DownloadOptions.ExistingFilePolicy.verify

    @Flag(
        name: [.customShort("g"), .customLong("no-glob"), .customLong("globoff")],
        help: "Take [1-9] and {a,b} in URLs as they stand.")
    var noGlob = false

    @Flag(help: "Do not create missing directories.")
    var noCreateDirs = false

    mutating func validate() throws {
        if self.dir.isEmpty { throw ValidationError("--dir is empty") }
        switch self.output {
        case "": throw ValidationError("--output is empty")
        case "-" where self.continuation == .must:
            throw ValidationError(
                "what is written to standard output (-o -) is not kept, so that nothing can be continued")
        case let output? where !output.hasSuffix("/") && self.nameTemplate != nil:
            throw ValidationError("--output names the file, and leaves nothing to --name-template")
        default: break
        }
    }

    func apply(to request: inout DownloadRequest) {
        request.continuation = self.continuation
        request.ifExists = self.ifExists
        request.createsDirectories = !self.noCreateDirs
    }
}

/// Paths of files, as text.
enum Path {
    static func join(_ directory: String, _ path: String) -> String {
        if path.hasPrefix("/") || directory == "." { return path }
        return directory.hasSuffix("/") ? directory + path : "\(directory)/\(path)"
    }

    /// What `-o` names within `-d`, unless it is absolute; where it names no file a template does, or the response.
    static func destination(output: String?, dir: String, name: NameTemplate?) -> DownloadRequest.Destination {
        guard let output else { return .directory(dir, name: name) }
        guard output != "-" else { return .descriptor(STDOUT_FILENO) }
        let path = Self.join(dir, output)
        return output.hasSuffix("/") ? .directory(path, name: name) : .file(path)
    }
}
