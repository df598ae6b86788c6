import Foundation
import Mutation

/// Builds the mutated copy, optimized.
struct Build {
    /// A compiler error in a file of the copy.
    struct Failure: Hashable {
        let path: String
        let place: Place
        let message: String
    }

    let workspace: Workspace
    /// The options that choose what is built: the simulator and the tests in one.
    var target = ["--build-tests"]

    /// Returns the errors; none if the build succeeded.
    func run() throws -> [Failure] {
        let log = self.workspace.place + "/build.log"
        let command = Command(
            arguments: [
                "swift", "build", "-c", "release", "--package-path", self.workspace.tree, "--scratch-path",
                self.workspace.build,
            ] + self.target)
        if try command.run(output: log) == .succeeded { return [] }
        let prefix = self.workspace.tree + "/"
        let failures = try read(log).split(separator: "\n").compactMap { line -> Failure? in
            guard line.hasPrefix(prefix), let message = line.firstRange(of: ": error: ") else { return nil }
            let parts = line[..<message.lowerBound].dropFirst(prefix.count).split(separator: ":")
            guard parts.count == 3, let number = Int(parts[1]), let column = Int(parts[2]) else { return nil }
            return Failure(
                path: String(parts[0]), place: Place(line: number, column: column),
                message: String(line[message.upperBound...]))
        }
        guard !failures.isEmpty else { throw Problem("The mutated copy does not build; see \(log)") }
        return Array(Set(failures)).sorted { ($0.path, $0.place) < ($1.path, $1.place) }
    }
}
