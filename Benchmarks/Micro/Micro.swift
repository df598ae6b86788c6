import ArgumentParser

/// Measures allocations and time of the engine's inner parts. The allocations are equal on every machine, and have
/// limits.
@main
struct Micro: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "segdl-micro",
        abstract: "Measure planner, verdict, manifest, state machine and write path, one operation at a time.",
        discussion: "Fails if an operation exceeds its limit of allocations. Times are for comparison on one machine.")

    @Option(help: "Measure only operations whose name contains this.") var only = ""
    @Option(help: "Seconds per operation.") var seconds = 0.2

    func run() async throws {
        var isWithin = true
        print("".padding(46) + "   ns each   allocations   allowed")
        for operation in try await Operation.all where self.only.isEmpty || operation.name.contains(self.only) {
            let figures = try operation.measure(seconds: self.seconds)
            let isMore = figures.allocations > operation.allocationsMax
            isWithin = isWithin && !isMore
            print(
                operation.name.padding(46) + "\(Int(figures.nanoseconds))".padding(-10)
                    + figures.allocations.shown.padding(-14) + operation.allocationsMax.shown.padding(-10)
                    + (isMore ? "  too many" : ""))
        }
        guard isWithin else { throw ExitCode.failure }
    }
}

extension String {
    /// Pads to this width, or leaves a longer text as it is; a negative width pads on the left.
    fileprivate func padding(_ width: Int) -> String {
        let spaces = String(repeating: " ", count: max(abs(width) - self.count, 0))
        return width < 0 ? spaces + self : self + spaces
    }
}

extension Double {
    fileprivate var shown: String {
        let tenths = Int((self * 10).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }
}
