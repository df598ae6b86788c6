import ArgumentParser
import Foundation
import Mutation

/// Writes the mutated copy and builds it.
struct Generate: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write a mutated copy of the package, and build it once for all mutations.")

    @Option(parsing: .upToNextOption, help: "The folders or files to mutate.")
    var mutate = [
        "Sources/SegmentedDownloadCore/Planning", "Sources/SegmentedDownloadCore/Download",
        "Sources/SegmentedDownloadCore/Mirrors", "Sources/SegmentedDownloadCore/Group",
        "Sources/SegmentedDownloadCore/Concurrency",
        "Sources/SegmentedDownloadCore/Manifest", "Sources/SegmentedDownloadCore/HTTP",
        "Sources/SegmentedDownloadCore/Identity", "Sources/SegmentedDownload/Storage",
        "Sources/SegmentedDownload/Engine",
    ]
    @Option(help: "Compile in only this many mutations, chosen by their content and the seed. (default: all)")
    var sample: Int?
    @Option(help: "Compile in only the mutations of this file, in the form of Tests/Mutants/survivors.tsv.")
    var listed: String?
    @Option(help: "The seed of the sample.") var seed: UInt64 = 1
    @Flag(
        help: "Leave out the library's tests, which take longest to build; run then needs --judges without other-tests."
    )
    var withoutLibraryTests = false
    @Flag(help: "Write the copy without building it.") var withoutBuild = false

    func run() throws {
        let workspace = Workspace()
        let tree = try Tree(
            workspace: workspace, mutating: self.mutate,
            excluding: self.withoutLibraryTests ? ["SegmentedDownloadTests"] : [])
        try tree.copy()
        var sites = SiteSet(files: tree.files, choice: try self.choice())
        sites.reject(keys: Set(rows(workspace.rejected).map { $0.joined(separator: "\t") }))
        var isChanged = false
        /// Each round finds all errors of one kind; few sites have errors that hide others.
        let roundsMax = 20
        for round in 1...roundsMax {
            for (index, file) in tree.files.enumerated() {
                let text = file.mutated(without: sites.left(out: index)).text
                if try write(text, to: workspace.path(inTree: file.path)) { isChanged = true }
            }
            if self.withoutBuild { break }
            let errors = try Build(workspace: workspace).run()
            if errors.isEmpty { break }
            let count = sites.reject(errors, in: tree)
            say("round \(round): \(errors.count) errors, \(count) sites rejected")
            if count == 0 || round == roundsMax {
                throw Problem("The mutated code does not build; see \(workspace.place)/build.log\n\(errors[0])")
            }
        }
        // The next run leaves these sites out at once.
        try write(sites.rejectedKeys.sorted().map { $0 + "\n" }.joined(), to: workspace.rejected)
        let mutations = sites.mutations
        let list = mutations.map { "\($0.number)\t\($0.line)\t\($0.key)\n" }.joined()
        let title = "# number, line, file, function, kind, original, replacement, occurrence\n"
        if try write(title + list, to: workspace.list) { isChanged = true }
        if isChanged { try workspace.removeFindings() }
        say("\(mutations.count) mutations, \(sites.rejectedCount) sites rejected by the compiler")
    }

    private func choice() throws -> SiteSet.Choice {
        if let listed {
            let keys = rows(listed).filter { $0.count == 8 }.map { $0[2...].joined(separator: "\t") }
            guard !keys.isEmpty else { throw Problem("\(listed) lists no mutation.") }
            return .listed(Set(keys))
        }
        return self.sample.map { .sample(Sample(seed: self.seed), count: $0) } ?? .all
    }
}
