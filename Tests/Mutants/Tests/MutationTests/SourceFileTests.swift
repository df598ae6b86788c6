import Testing

@testable import Mutation

@Suite("Mutated source")
struct SourceFileTests {
    private func mutated(_ text: String) throws -> String {
        try SourceFile(path: "a.swift", text: text, first: 1).mutated(without: []).text
    }

    @Test(
        "Each kind of site is compiled in beside the original",
        arguments: [
            ("let x = a < b + 1", "let x = Mutant.less(1, a , Mutant.addOne(2, b , 1))"),
            ("let x = !a && b", "let x = Mutant.and(1, Mutant.not(2, a) , b)"),
            ("let x = try a() == nil", "let x = try Mutant.isNil(1, a() , nil)"),
            ("let x = min(a, max(b, c))", "let x = Mutant.min(1, a, Mutant.max(2, b, c))"),
            ("for i in 0..<n { f(i) }", "for i in Mutant.range(1, 0,n) { if Mutant.keeps(2) { f(i) } }"),
            ("func f() { self.x += 1 }", "func f() { if Mutant.keeps(1) { Mutant.addAssign(2, &self.x , 1) } }"),
            ("let x = { g($0) }", "let x = { g($0) }"),
            (
                "p.limit = f(at: end)",
                "if Mutant.keeps(1) { p.limit = Mutant.plain(2, f(at: Mutant.plain(3, end))) }"
            ),
            ("precondition(a < b)", "precondition(a < b)"),
        ])
    func sites(text: String, expected: String) throws {
        #expect(try self.mutated(text) == expected)
    }

    @Test("A guard's condition and an early return can be dropped, and negated")
    func conditions() throws {
        #expect(
            try self.mutated("func f() {\n  guard a, let b else { return }\n  if let b, c { return }\n}")
                == """
                func f() {
                  guard Mutant.passes(1, Mutant.condition(2, a)), let b else { return }
                  if Mutant.keeps(3), let b, Mutant.condition(4, c) { return }
                }
                """)
    }

    @Test("A mutation is described by its change and its place")
    func description() throws {
        let file = try SourceFile(
            path: "a.swift", text: "extension Plan {\n  var end: Int {\n    a -\n 1 }\n}", first: 7)
        #expect(file.mutations.map(\.number) == [7, 8, 9])
        #expect(file.mutations.map(\.kind) == [.arithmetic, .oneDropped, .oneDoubled])
        #expect(file.mutations.map(\.replacement) == ["a + 1", "a", "a - 1 - 1"])
        #expect(file.mutations.allSatisfy { $0.original == "a - 1" && $0.function == "Plan.end" && $0.line == 3 })
    }

    @Test("A rejected site is unchanged, and the others keep their numbers")
    func rejected() throws {
        let file = try SourceFile(path: "a.swift", text: "let x = a < b && c", first: 1)
        let (text, places) = file.mutated(without: [0])
        #expect(text == "let x = Mutant.less(2, a , b) && c")
        #expect(places == [1: Place(line: 1, column: 9)...Place(line: 1, column: 30)])
    }

    @Test("An assignment that initializes a constant is not mutated")
    func initialization() throws {
        let text = "func f() { let x: Int; if a { x = 1 } else { x = 2 } }"
        #expect(try self.mutated(text) == text.replacing("if a", with: "if Mutant.condition(1, a)"))
    }
}
