import ArgumentParser
import Dispatch
import Foundation
import Mutation
import Synchronization

/// Builds all mutations of Tests/Mutations/mutations.tsv into one program and judges each.
struct Listed: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Run simulated worlds with each mutation of Tests/Mutations/mutations.tsv, until one finds it.")

    @Argument(help: "Judge only mutations whose name contains a match of this regular expression.") var pattern = "."
    @Argument(help: "Number of worlds of each kind, ten times as many of the state machine.") var seeds = 20_000
    @Flag(help: "Write the copy without building it.") var withoutBuild = false

    func run() throws {
        let workspace = Workspace(name: "listed")
        var tree = try Tree(workspace: workspace, mutating: [], excluding: [])
        let all = try ListedMutation.all(workspace)
        let pattern = try Regex(self.pattern)
        let chosen = all.filter { $0.name.contains(pattern) }
        guard !chosen.isEmpty else { throw Problem("No mutation matches \(self.pattern).") }
        for mutation in chosen where mutation.text == mutation.original {
            throw Problem("\(mutation.name): does not apply any more; update Tests/Mutations/mutations.tsv")
        }
        let build = Build(workspace: workspace, target: ["--product", "segdl-simulate"])
        // All, whatever the pattern, so that the next run has the same program.
        let separate = try self.compile(all, into: &tree, build)
        for mutation in chosen where separate.contains(mutation.number) {
            say("\(mutation.name) needs a build of its own")
        }
        if self.withoutBuild { return }
        let judges = try self.judges(workspace)
        let missed = Mutex(0)
        let together = chosen.filter { !separate.contains($0.number) }
        DispatchQueue.concurrentPerform(iterations: together.count) { index in
            if !self.judge(together[index], judges, workspace) { missed.withLock { $0 += 1 } }
        }
        for mutation in chosen where separate.contains(mutation.number) {
            let path = workspace.path(inTree: mutation.path)
            let text = try read(path)
            defer { _ = try? write(text, to: path) }
            try write(mutation.text, to: path)
            if let error = try build.run().first {
                say("MISSED  \(mutation.name): does not build: \(error.message)")
                missed.withLock { $0 += 1 }
            } else if !self.judge(mutation, judges, workspace) {
                missed.withLock { $0 += 1 }
            }
        }
        let count = missed.withLock { $0 }
        if count > 0 { throw Problem("\(count) not found") }
    }

    // MARK: Building

    /// Builds one program with the mutations.
    ///
    /// Returns the numbers of those that cannot be compiled in beside the others.
    private func compile(_ all: [ListedMutation], into tree: inout Tree, _ build: Build) throws -> Set<Int> {
        let files = Dictionary(grouping: all, by: \.path).values
        var separate: Set<Int> = []
        while true {
            tree.files = files.map { mutations in
                let versions = mutations.filter { !separate.contains($0.number) }.map {
                    ($0.number, ($0.name, $0.text))
                }
                return SourceFile(
                    path: mutations[0].path, text: mutations[0].original,
                    versions: Dictionary(uniqueKeysWithValues: versions))
            }
            let compiled = tree.files.flatMap(\.mutations).map(\.number)
            separate = Set(all.map(\.number)).subtracting(compiled)
            try tree.copy()
            let mutated = tree.files.map { ($0, $0.mutated(without: [])) }
            for (file, mutated) in mutated {
                try write(mutated.text, to: tree.workspace.path(inTree: file.path))
            }
            if self.withoutBuild { return separate }
            let errors = try build.run()
            if errors.isEmpty { return separate }
            let rejected = errors.compactMap { error -> Int? in
                guard let (file, mutated) = mutated.first(where: { $0.0.path == error.path }) else { return nil }
                let innermost = mutated.places.filter { $0.value.contains(error.place) }
                    .max { $0.value.lowerBound < $1.value.lowerBound }
                return innermost.map { file.sites[$0.key].mutations[0].number }
            }
            guard !rejected.isEmpty else {
                throw Problem("The mutated code does not build; see \(tree.workspace.place)/build.log\n\(errors[0])")
            }
            separate.formUnion(rejected)
        }
    }

    // MARK: Judging

    /// The judges, after a check that a hundredth of their worlds passes without a mutation.
    ///
    /// Each kind of world is first tried with a tenth of the worlds: what only the last kind finds would else cost all worlds
    /// of the others.
    private func judges(_ workspace: Workspace) throws -> [Judge] {
        let few = max(self.seeds / 100, 1)
        let secondsForFew = try Judge.worlds(workspace, count: few).map { part in
            let start = Date()
            if let how = try part.judge(0, output: workspace.output(0)) {
                throw Problem("\(part.name) fails without a mutation; see \(workspace.output(0)): \(how)")
            }
            return Date().timeIntervalSince(start)
        }
        return [max(self.seeds / 10, 1), self.seeds].flatMap { count in
            zip(Judge.worlds(workspace, count: count), secondsForFew).map { judge, seconds in
                var judge = judge
                // Thrice the expected time, because worlds differ and several judges run at once.
                judge.seconds = max(judge.seconds, 3 * seconds * Double(count / few))
                return judge
            }
        }
    }

    /// Prints the result. Returns whether the mutation was found.
    private func judge(_ mutation: ListedMutation, _ judges: [Judge], _ workspace: Workspace) -> Bool {
        let output = workspace.output(mutation.number)
        do {
            for judge in judges where mutation.canBeFound(by: judge) {
                guard let how = try judge.judge(mutation.number, output: output) else { continue }
                let worlds = try read(output).firstMatch(of: /^[0-9]+ worlds/.anchorsMatchLineEndings())
                say("found   \(mutation.name) by \(judge.name) after \(worlds?.output ?? "a few worlds"): \(how)")
                return true
            }
            say("MISSED  \(mutation.name): \(mutation.meaning)")
        } catch {
            say("MISSED  \(mutation.name): \(error)")
        }
        return false
    }
}
