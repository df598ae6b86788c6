import ArgumentParser

/// Compares the survivors with the accepted ones.
struct Report: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Print the totals, and fail if a mutation survives that Tests/Mutants/survivors.tsv does not list."
    )

    @Flag(help: "Print the unlisted survivors as lines for that file.") var asLines = false

    func run() throws {
        let workspace = Workspace()
        let findings = Finding.all(workspace)
        guard !findings.isEmpty else { throw Problem("No mutation has been judged: use the subcommand run first.") }
        let mutations = Dictionary(uniqueKeysWithValues: Row.all(workspace).map { ($0.number, $0) })
        let listed = Dictionary(
            rows(workspace.survivors).filter { $0.count == 8 }.map { ($0[2...].joined(separator: "\t"), $0[0]) }
        ) { first, _ in first }
        var (killed, equivalent, accepted, unlisted, needless) = (0, 0, 0, [Row](), [Row]())
        for finding in findings {
            guard let mutation = mutations[finding.number] else { continue }
            switch (finding.verdict, listed[mutation.key]) {
            case (.killed, nil): killed += 1
            case (.killed, _?):
                killed += 1
                needless.append(mutation)
            case (_, "equivalent"): equivalent += 1
            case (_, _?): accepted += 1
            case (_, nil): unlisted.append(mutation)
            }
        }
        for judge in Set(findings.map(\.judge)).sorted() where !judge.isEmpty {
            print("\(judge) killed \(findings.count { $0.judge == judge })")
        }
        for mutation in needless { print("listed, but killed: \(mutation)") }
        for mutation in unlisted {
            print(self.asLines ? "\t\t\(mutation.key)" : "survives: \(mutation)")
        }
        let judged = killed + accepted + unlisted.count
        let tenths = judged == 0 ? 0 : killed * 1000 / judged
        let unreached = findings.count { $0.verdict == .unreached }
        print(
            "\(mutations.count) mutations, \(findings.count) judged: \(killed) killed, \(accepted + unlisted.count) survive "
                + "(\(unlisted.count) not listed), \(equivalent) equivalent, \(unreached) reached by no judge; "
                + "\(tenths / 10).\(tenths % 10) % of those that are not equivalent are killed")
        if !unlisted.isEmpty { throw ExitCode.failure }
    }
}
