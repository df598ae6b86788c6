import Testing

@testable import Mutation

@Suite("Versions of a file in one")
struct VersionsTests {
    private func merged(_ text: String, _ versions: String...) -> String {
        let numbered = versions.enumerated().map { ($0 + 1, (name: "v\($0 + 1)", text: $1)) }
        return SourceFile(path: "a.swift", text: text, versions: Dictionary(uniqueKeysWithValues: numbered))
            .mutated(without: []).text
    }

    @Test(
        "The smallest body or initial value with the difference is exchanged",
        arguments: [
            ("func f() { g() }", "func f() { h() }", "func f() { if Mutant.isActive(1) { h() } else { g() } }"),
            ("func f() { g() }", "func f() { }", "func f() { if Mutant.isActive(1) {  } else { g() } }"),
            ("init() { x = 1 }", "init() { x = 2 }", "init() { if Mutant.isActive(1) { x = 2 } else { x = 1 } }"),
            (
                "func f() {\n  // Why.\n  g()\n  // End.\n}", "func f() {\n  // Why.\n  h()\n  // End.\n}",
                "func f() {\n  // Why.\n  if Mutant.isActive(1) { h() } else { g() }\n  // End.\n}"
            ),
            (
                "func f() { func g() { h() }; g() }", "func f() { func g() { i() }; g() }",
                "func f() { func g() { if Mutant.isActive(1) { i() } else { h() } }; g() }"
            ),
            (
                "struct S { let x = 1 }", "struct S { let x = 2 }",
                "struct S { let x = (Mutant.isActive(1) ? (2) : (1)) }"
            ),
            (
                "func f(_ x: Int = 1) {}", "func f(_ x: Int = 2) {}",
                "func f(_ x: Int = (Mutant.isActive(1) ? (2) : (1))) {}"
            ),
            (
                "func f() { let g = { h() } }", "func f() { let g = { i() } }",
                "func f() { if Mutant.isActive(1) { let g = { i() } } else { let g = { h() } } }"
            ),
            ("func f() {}", "func f(x: Int) {}", "func f() {}"),
        ])
    func parts(text: String, version: String, expected: String) {
        #expect(self.merged(text, version) == expected)
    }

    @Test(
        "The only expression of a body that returns a value gets a return",
        arguments: [
            (
                "func f() -> Int { 1 }", "func f() -> Int { g(); return 2 }",
                "func f() -> Int { if Mutant.isActive(1) { g(); return 2 } else { return 1 } }"
            ),
            (
                "var x: Int { get { 1 } set { g() } }", "var x: Int { get { 2 } set { h() } }",
                "var x: Int { get { if Mutant.isActive(1) { return 2 } else { return 1 } } "
                    + "set { if Mutant.isActive(1) { h() } else { g() } } }"
            ),
            (
                "subscript(i: Int) -> Int { i }", "subscript(i: Int) -> Int { -i }",
                "subscript(i: Int) -> Int { if Mutant.isActive(1) { return -i } else { return i } }"
            ),
            (
                "var x: Int { if a { 1 } else { 2 } }", "var x: Int { if a { 3 } else { 2 } }",
                "var x: Int { if Mutant.isActive(1) { return if a { 3 } else { 2 } } else { return if a { 1 } else { 2 } } }"
            ),
            (
                "var x: Int { switch a { case b: return 1 } }", "var x: Int { switch a { default: return 1 } }",
                "var x: Int { if Mutant.isActive(1) { switch a { default: return 1 } } "
                    + "else { switch a { case b: return 1 } } }"
            ),
            (
                "var x: Int { switch a { case b: c { return 1 } } }", "var x: Int { switch a { case b: 2 } }",
                "var x: Int { if Mutant.isActive(1) { return switch a { case b: 2 } } "
                    + "else { return switch a { case b: c { return 1 } } } }"
            ),
        ])
    func returns(text: String, version: String, expected: String) {
        #expect(self.merged(text, version) == expected)
    }

    @Test("A body has several versions, and a version several bodies")
    func several() {
        let text = "func f() -> Int { 1 }; func g() { 2 }"
        let versions = [text.replacing("1", with: "3"), text.replacing("1", with: "4").replacing("2", with: "5")]
        #expect(
            self.merged(text, versions[0], versions[1])
                == "func f() -> Int { if Mutant.isActive(1) { return 3 } else { "
                + "if Mutant.isActive(2) { return 4 } else { return 1 } } }; "
                + "func g() { if Mutant.isActive(2) { 5 } else { 2 } }")
    }

    @Test("A function inside of another with versions has its own")
    func nested() {
        let text = "func f() { func g() { 1 }; 2 }"
        #expect(
            self.merged(text, text.replacing("1", with: "3"), text.replacing("2", with: "4"))
                == "func f() { if Mutant.isActive(2) { func g() { 1 }; 4 } else { "
                + "func g() { if Mutant.isActive(1) { 3 } else { 1 } }; 2 } }")
    }
}
