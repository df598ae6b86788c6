import SegmentedDownload
import SystemPackage

/// The files that a command line and its lists name.
///
/// A file that is named twice is fetched once. A malformed entry of a list, and one whose destination another file has, is a
/// file that fails, and the others are fetched. An error of the command line refuses the run.
struct RequestCollection {
    /// Whether an option names the destination of all files, so that only one is allowed. The caller refuses more.
    var hasOneDestination = false
    private(set) var requests: [DownloadRequest] = []
    /// Files that cannot be requested, and why.
    private(set) var refused: [(path: String, error: DownloadError)] = []
    /// The indices of requests by their destinations.
    private var owners: [String: Int] = [:]
    /// In most lists, all files have the same directory.
    private var directory = (path: FilePath(), text: "")
    /// The error if no file can be requested.
    private var firstFailure: DownloadError?
    private var doublesCount = 0
    /// The places of the first doubles.
    private var doubles: [String] = []

    /// 5: more places are not read.
    private static let doublesNamedMax = 5

    /// Adds a file, unless it is there already.
    ///
    /// - Parameter place: The place of a list's entry, or the path of an interrupted download; nil for an argument.
    /// - Throws: ``DownloadError`` with code `usage` if another argument has the same destination.
    mutating func add(_ request: DownloadRequest, at place: @autoclosure () -> String? = nil) throws(DownloadError) {
        guard let key = Self.key(of: request, &self.directory) else { return self.requests.append(request) }
        guard let owner = self.owners[key] else {
            self.owners[key] = self.requests.count
            return self.requests.append(request)
        }
        // Any number of files can go to the null device.
        if case .file(let path) = request.destination, StreamDestinations.isStream(path) {
            return self.requests.append(request)
        }
        let other = self.requests[owner]
        let isDescriptor = if case .descriptor = request.destination { true } else { false }
        if other == request, !isDescriptor {
            self.doublesCount += 1
            if self.doubles.count < Self.doublesNamedMax { self.doubles.append(place() ?? request.source.description) }
            return
        }
        // With `rename` both are kept, with a number in the name of one.
        guard request.ifExists != .rename, !self.hasOneDestination else { return self.requests.append(request) }
        let name = key.lastPathComponent.shown
        guard let place = place() else {
            throw DownloadError(
                .usage, "\(other.source) and \(request.source) have the same destination, \(name)",
                hint: "Fetch them in separate runs, or into different directories with -d")
        }
        let words = other.source == request.source ? "with other options" : "from \(other.source)"
        self.refused.append(
            (
                place,
                DownloadError(
                    .usage, "another file has the same destination, \(name), \(words)",
                    hint: "Give each a file of its own, with out= or another directory; the other files are fetched")
            ))
    }

    /// Adds an entry of a list that cannot be requested.
    mutating func refuse(_ problem: ListProblem, in list: InputFile) {
        self.firstFailure = self.firstFailure ?? problem.failure(in: list.name)
        self.refused.append(
            (
                problem.place.name(in: list.name),
                DownloadError(problem.code, problem.message, hint: "Correct the entry; the other files are fetched")
            ))
    }

    /// - Throws: The first failure, if there is no file to fetch: the list may not be one at all.
    func check() throws(DownloadError) {
        if self.requests.isEmpty, let firstFailure { throw firstFailure }
    }

    /// Which files are named twice; nil if none is.
    var remark: String? {
        guard self.doublesCount > 0 else { return nil }
        let places = self.doubles.joined(separator: ", ") + (self.doublesCount > self.doubles.count ? ", …" : "")
        return self.doublesCount == 1
            ? "named again, and fetched once: \(places)"
            : "\(self.doublesCount) files are named again, and fetched once: \(places)"
    }

    /// The destination's path, or the path that is likely; nil for a stream, see ``StreamDestinations``.
    ///
    /// The response often names the file of a URL with a query, and a template names others. For these the key is the
    /// URL. If two of them get the same name, the second one fails, because the first is being fetched or is in place.
    /// Names that differ by a symbolic link are not recognized either.
    ///
    /// - Parameter latest: The latest directory, and its text without dots.
    private static func key(of request: DownloadRequest, _ latest: inout (path: FilePath, text: String)) -> String? {
        switch request.destination {
        case .stream: return nil
        case .file(let path):
            return path.withoutDots
        case .descriptor:
            return request.destination.text
        case .directory(_, _?):
            return request.source.string
        case .directory(let directory, nil):
            let url = request.source.string
            let name = url.lastPathComponent
            guard !url.utf8.contains(UInt8(ascii: "?")), !name.isEmpty else { return url }
            if latest.path != directory { latest = (directory, directory.withoutDots) }
            return "\(latest.text)/\(name)"
        }
    }
}

extension FilePath {
    /// The path without components `.`. A component `..` stays: before it, there may be a symbolic link.
    fileprivate var withoutDots: String {
        FilePath(root: self.root, self.components.filter { $0.kind != .currentDirectory }).string
    }
}
