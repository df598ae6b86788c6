import ArgumentParser
import Foundation

/// The options of all subcommands.
struct LabOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The command to test. (default: segdl beside this program)", valueName: "PATH"))
    var segdl: String?

    @Option(help: ArgumentHelp("The directory for files, on the disk to test.", valueName: "DIR"))
    var directory = NSTemporaryDirectory()

    @Option(help: ArgumentHelp("The seed of random choices.", valueName: "N"))
    var seed: UInt64 = 1

    @Option(help: ArgumentHelp("Run only every N-th case, starting with case I (from 0).", valueName: "I/N"))
    var slice = Slice.all

    @Option(help: ArgumentHelp("Run at most N cases.", valueName: "N"))
    var limit = Int.max

    @Option(help: ArgumentHelp("Cases run at once.", valueName: "N"))
    var jobs = 3

    @Option(help: ArgumentHelp("Run only cases whose description contains TEXT.", valueName: "TEXT"))
    var only: String?

    func validate() throws {
        guard self.jobs > 0 else { throw ValidationError("--jobs is at least 1") }
    }

    /// The cases to run.
    func chosen<Case: CustomStringConvertible>(_ cases: [Case]) -> [Case] {
        let wanted = cases.filter { one in self.only.map { "\(one)".contains($0) } ?? true }
        return Array(self.slice.of(wanted).prefix(self.limit))
    }
}

/// A fixed share of a list, so that a short run covers the same cases each time.
struct Slice: ExpressibleByArgument, Hashable {
    static let all = Self(index: 0, count: 1)

    let index: Int
    let count: Int

    private init(index: Int, count: Int) {
        self.index = index
        self.count = count
    }

    init?(argument: String) {
        let parts = argument.split(separator: "/").map { Int($0) }
        guard parts.count == 2, let index = parts[0], let count = parts[1], count > 0, (0..<count).contains(index)
        else {
            return nil
        }
        self.init(index: index, count: count)
    }

    var defaultValueDescription: String { "\(self.index)/\(self.count)" }

    func of<Case>(_ cases: [Case]) -> [Case] {
        stride(from: self.index, to: cases.count, by: self.count).map { cases[$0] }
    }
}
