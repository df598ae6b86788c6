import Foundation

/// The paths of all files, in the checkout that is the current directory.
struct Workspace {
    let root = FileManager.default.currentDirectoryPath
    /// Separates the files of listed mutations from those of generated ones.
    var name = "generated"
    var place: String { self.root + "/.build/mutants/" + self.name }
    /// The mutated copy of the package.
    var tree: String { self.place + "/tree" }
    /// `SEGDL_MUTANTS_BUILD=$PWD/.build` builds in the package's own build directory, which has the dependencies. The
    /// package's next build then rebuilds its modules.
    var build: String { ProcessInfo.processInfo.environment["SEGDL_MUTANTS_BUILD"] ?? self.place + "/build" }
    var programs: String { self.build + "/release" }
    /// All compiled-in mutations.
    var list: String { self.place + "/mutations.tsv" }
    /// The first mutation of each site that the compiler rejected, by its key.
    var rejected: String { self.place + "/rejected.tsv" }
    var results: String { self.place + "/results.tsv" }
    /// The output of the worker's last command.
    func output(_ worker: Int) -> String { self.place + "/output-\(worker)" }
    /// The mutations that a judge evaluates, one byte each, and its time without a mutation.
    func seen(_ judge: String) -> String { self.place + "/seen-\(judge)" }
    func seconds(_ judge: String) -> String { self.place + "/seconds-\(judge)" }
    var survivors: String { self.root + "/Tests/Mutants/survivors.tsv" }
    /// The mutations chosen by hand.
    var listed: String { self.root + "/Tests/Mutations/mutations.tsv" }
    var runtime: String { self.root + "/Tests/Mutants/Runtime/Mutant.swift" }

    func path(inTree path: String) -> String { self.tree + "/" + path }

    /// Removes findings about other code.
    func removeFindings() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: self.place)
        where name.hasPrefix("seen-") || name.hasPrefix("seconds-") || name == "results.tsv" {
            try FileManager.default.removeItem(atPath: self.place + "/" + name)
        }
    }
}

func read(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

/// Writes a file unless it has this content, to keep builds incremental. Returns whether it was written.
@discardableResult
func write(_ text: String, to path: String) throws -> Bool {
    guard (try? read(path)) != text else { return false }
    let folder = URL(fileURLWithPath: path).deletingLastPathComponent()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    return true
}

/// The lines of a tab-separated file, without comments; none if the file does not exist.
func rows(_ path: String) -> [[String]] {
    guard let text = try? read(path) else { return [] }
    return text.split(separator: "\n").filter { !$0.hasPrefix("#") }
        .map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
}

/// Prints a line at once, even if standard output is a file.
func say(_ line: String) {
    print(line)
    fflush(nil)
}
