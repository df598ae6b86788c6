import Testing

/// The manual page's examples, run as they stand there.
@Suite("Examples of the manual")
struct ManualExampleTests {
    @Test("An example does what the manual says of it", arguments: ManualExample.all)
    func example(_ example: ManualExample) async throws {
        let outcome = try await ManualScene.run(example)
        #expect(outcome.status == example.status, "\(outcome)")
        #expect(outcome.errors.contains("segdl: error[") == (example.status != 0), "\(outcome)")
    }

    @Test("Every option is in an example, or its opposite is")
    func options() async throws {
        let words = Set(ManualExample.all.flatMap(\.words).map { String($0) })
        #expect(ManualExample.all.allSatisfy { $0.words.first == "segdl" })
        for option in try await withCommand({ try await CommandOutline($0) }).options {
            let isShown = option.spellings.contains { spelling in
                words.contains(spelling) || words.contains("--no-" + spelling.drop { $0 == "-" })
            }
            #expect(isShown, "scripts/manual.mdoc has no example with \(option.spellings.joined(separator: ", "))")
        }
    }

    @Test("Examples are what stands in displays of their section, over one line or more")
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
