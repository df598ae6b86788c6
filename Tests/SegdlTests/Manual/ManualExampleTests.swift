import Testing

/// Runs the manual page's examples.
@Suite("Examples of the manual")
struct ManualExampleTests {
    @Test("An example has the result that the manual states", arguments: ManualExample.all)
    func example(_ example: ManualExample) async throws {
        let outcome = try await ManualScene.run(example)
        #expect(outcome.status == example.status, "\(outcome)")
        #expect(outcome.errors.contains("segdl: error[") == (example.status != 0), "\(outcome)")
    }

    @Test("Every option or its opposite is in an example")
    func options() async throws {
        let words = Set(ManualExample.all.flatMap(\.words).map { String($0) })
        #expect(ManualExample.all.allSatisfy { $0.words.first == "segdl" })
        for option in try await withCommand({ try await CommandOutline($0) }).options {
            let isShown = option.spellings.contains { spelling in
                let name = spelling.drop { $0 == "-" }
                let opposite = name.hasPrefix("no-") ? "--\(name.dropFirst(3))" : "--no-\(name)"
                // -R is short for --remote-time.
                return words.contains(spelling) || words.contains(opposite)
                    || opposite == "--remote-time" && words.contains("-R")
            }
            #expect(isShown, "scripts/manual.mdoc has no example with \(option.spellings.joined(separator: ", "))")
        }
    }

    @Test("Examples are the commands in the displays of their section, of one line or more")
    func parsing() {
        let page = #"""
            .Sh SYNOPSIS
            .Bd -literal
            segdl other
            .Ed
            .Sh EXAMPLES
            Words:
            .Bd -literal -offset 2n
            segdl one \e
                --two=3
            segdl four   # exit status 13
            .Ed
            segdl words
            .Sh FILES
            """#
        let examples = ManualExample.examples(in: page)
        #expect(examples.map(\.text) == ["segdl one \\\n    --two=3", "segdl four   # exit status 13"])
        #expect(examples.map(\.status) == [0, 13])
        #expect(examples.first?.words == ["segdl", "one", "\\", "--two"])
    }
}
