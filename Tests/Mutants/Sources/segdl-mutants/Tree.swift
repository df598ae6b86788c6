import Foundation
import Mutation

/// The mutated copy of the package.
struct Tree {
    /// All files that the build needs.
    private static let folders = ["Package.swift", "Sources", "Tests", "Fixtures", "Benchmarks"]
    private static let modules = [
        "Sources/SegmentedDownloadCore", "Sources/SegmentedDownload", "Sources/SegmentedDownloadService",
    ]
    /// Targets that no judge needs.
    private static let unused = [
        "SegdlTests", "segdl", "segdl-crash", "segdl-origin", "segdl-benchmark", "segdl-benchmark-tools", "segdl-micro",
        "CAllocations",
    ]
    /// Excludes unused targets, and stops warnings in mutated code from being errors.
    private static let manifestEnd = """
        package.targets.removeAll { unused.contains($0.name) }
        package.products.removeAll { unused.contains($0.name) }
        for target in package.targets where target.swiftSettings != nil {
            target.swiftSettings?.append(.treatAllWarnings(as: .warning))
            // The tests are built optimized.
            target.swiftSettings?.append(.unsafeFlags(["-enable-testing"]))
        }

        """

    let workspace: Workspace
    private let excluded: [String]
    private let paths: [String]
    var files: [SourceFile] = []

    /// - Parameters:
    ///   - folders: The folders or files to mutate.
    ///   - targets: Targets left out besides those that no judge needs.
    init(workspace: Workspace, mutating folders: [String], excluding targets: [String]) throws {
        self.workspace = workspace
        self.excluded = Self.unused + targets
        let listing = workspace.place + "/files"
        try FileManager.default.createDirectory(atPath: workspace.place, withIntermediateDirectories: true)
        let arguments = ["git", "ls-files", "--"] + Self.folders + [":!Tests/Mutants"]
        guard try Command(arguments: arguments).run(output: listing) == .succeeded else {
            throw Problem("git ls-files failed")
        }
        self.paths = try read(listing).split(separator: "\n").map(String.init).filter {
            FileManager.default.fileExists(atPath: workspace.root + "/" + $0)
        }
        var first = 1
        for path in self.paths.sorted() where path.hasSuffix(".swift") {
            guard folders.contains(where: { path.hasPrefix($0 + "/") || path == $0 }) else { continue }
            let file = try SourceFile(path: path, text: read(workspace.root + "/" + path), first: first)
            first += file.mutations.count
            self.files.append(file)
        }
    }

    /// Copies the files that are not mutated, and deletes files that no longer exist.
    func copy() throws {
        let mutated = Set(self.files.map(\.path))
        let manager = FileManager.default
        for path in self.paths where !mutated.contains(path) {
            let (source, target) = (self.workspace.root + "/" + path, self.workspace.path(inTree: path))
            if path == "Package.swift" {
                let start = "\n// From here on: written by segdl-mutants.\nlet unused: Set = \(self.excluded)\n"
                try write(read(source) + start + Self.manifestEnd, to: target)
            } else if !manager.contentsEqual(atPath: source, andPath: target) {
                try? manager.removeItem(atPath: target)
                let folder = URL(fileURLWithPath: target).deletingLastPathComponent()
                try manager.createDirectory(at: folder, withIntermediateDirectories: true)
                try manager.copyItem(atPath: source, toPath: target)
            }
        }
        let runtime = try read(self.workspace.runtime)
        for module in Self.modules { try write(runtime, to: self.workspace.path(inTree: module + "/Mutant.swift")) }
        let all = Set(self.paths + Self.modules.map { $0 + "/Mutant.swift" })
        for folder in Self.folders.dropFirst() {
            for path in try manager.subpathsOfDirectory(atPath: self.workspace.path(inTree: folder)) {
                let target = self.workspace.path(inTree: folder + "/" + path)
                var isFolder: ObjCBool = false
                _ = manager.fileExists(atPath: target, isDirectory: &isFolder)
                if !isFolder.boolValue, !all.contains(folder + "/" + path) { try manager.removeItem(atPath: target) }
            }
        }
    }
}

struct Problem: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
