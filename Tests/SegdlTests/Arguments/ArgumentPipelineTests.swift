import ArgumentParser
import Foundation
import Testing

@testable import segdl

/// The passes over the arguments, each alone and all in their order.
@Suite("Argument pipeline")
struct ArgumentPipelineTests {
    // MARK: The walk

    @Test("The options that take a value are those of the parser, and no flag is among them")
    func options() throws {
        var (options, flags): (Set<String>, Set<String>) = ([], [])
        for command in SegdlCommand.configuration.subcommands {
            let outline = try JSONDecoder().decode(OptionOutline.self, from: Data(command._dumpHelp().utf8))
            for option in outline.options {
                let spellings = (option.names ?? []).map(\.spelling)
                if option.isFlag { flags.formUnion(spellings) } else { options.formUnion(spellings) }
            }
        }
        #expect(options.count > 80 && flags.count > 20)
        #expect(options.symmetricDifference(ArgumentWord.optionsWithValue).isEmpty)
        #expect(flags.isDisjoint(with: ArgumentWord.optionsWithValue))
    }

    @Test(
        "An argument is an operand, a flag, or an option with its value in the same argument or the next",
        arguments: [
            ("--output=a=b", "--output", "a=b"), ("--output=", "--output", ""), ("-oa", "-o", "a"),
            ("-qoa", "-o", "a"), ("-ou", "-o", "u"), ("-o=a", "-o", "=a"),
            ("-o", "-o", nil), ("-qo", "-o", nil), ("--quiet", "--quiet", nil), ("-q", nil, nil), ("-", nil, nil),
            ("", nil, nil), ("o=a", nil, nil), ("-\u{E9}", nil, nil),
        ] as [(String, String?, String?)])
    func words(argument: String, option: String?, value: String?) {
        let bytes = Array(argument.utf8)
        let word = ArgumentWord(bytes)
        #expect(word.option == option && word.valueStart.map { String(decoding: bytes[$0...], as: UTF8.self) } == value)
        #expect(word.awaitsValue == ["-o", "-qo"].contains(argument))
    }

    @Test("The next argument is an option's value unless it begins with a dash, and nothing after -- is an option")
    func values() {
        let walk = ArgumentWalk([
            "get", "-qo", "a", "--mirror", "-q", "-o", "-", "-c", "must", "-c", "u", "-C", "-", "--", "-o", "b",
        ])
        #expect(
            walk.items.map(\.arguments) == [
                ["get"], ["-qo", "a"], ["--mirror"], ["-q"], ["-o", "-"], ["-c", "must"], ["-c"], ["u"], ["-C"], ["-"],
            ])
        #expect(walk.items.map(\.value) == [nil, "a", nil, nil, "-", "must", nil, nil, nil, nil])
        #expect(walk.rest == ["--", "-o", "b"])
        #expect(ArgumentWalk(["-C", "-"], foreignOptions: ["-C"]).items.map(\.value) == ["-"])
        #expect(ArgumentWalk(["-o", "--"]).items.map(\.value) == [nil])
    }

    // MARK: The passes

    @Test(
        "Options of other programs that are the default are removed, and the arguments after them are kept",
        arguments: [
            ("-L u", "u"), ("-nd u", "u"), ("-fs u", "--quiet u"), ("-C - u", "u"), ("--continue-at=- u", "u"),
            ("--location -o -L", "-o"), ("-o f -- -L", "-o f -- -L"), ("--url u", "u"),
            ("--url u resume", "u resume"), ("resume --url u f", "resume --url u f"),
            ("--no-config resume --url u f", "--no-config resume --url u f"),
            ("--no-config resume --url=u f", "--no-config resume --url=u f"),
            ("-L --no-conf resume f --url u", "--no-config resume f --url u"),
        ])
    func understood(typed: String, expected: String) throws {
        let words = { (text: String) in text.split(separator: " ").map(String.init) }
        #expect(try CompatibilityOptions.understood(words(typed)) == words(expected))
    }

    @Test(
        "An option of another program that means something else is refused by its name",
        arguments: [("-C 1000 u", "-C"), ("--continue-at=1 u", "--continue-at"), ("-C", "-C"), ("-k", "-k")])
    func refused(typed: String, option: String) {
        let refusal = #expect(throws: CompatibilityOptions.Refusal.self) {
            try CompatibilityOptions.understood(typed.split(separator: " ").map(String.init))
        }
        #expect(refusal?.word == option)
    }

    @Test(
        "The run's settings stand after the subcommand and before all that was typed, and --no-config is removed",
        arguments: [
            (["u", "-q"], ["--max-connections=3", "u", "-q"]),
            (["resume", "f"], ["resume", "--max-connections=3", "f"]),
            (["--no-config", "u", "--", "--no-config"], ["--max-connections=3", "u", "--", "--no-config"]),
            (["--no-config", "resume", "f"], ["resume", "--max-connections=3", "f"]),
            (["--no-config", "--", "resume"], ["--max-connections=3", "--", "resume"]),
            (["--", "resume"], ["--max-connections=3", "--", "resume"]), ([], ["--max-connections=3"]),
        ])
    func inserted(typed: [String], expected: [String]) throws {
        let file = try ConfigurationFile("max-connections = 3\n", path: "c")
        #expect(try StoredOptions(file, command: nil).inserted(into: typed) == expected)
    }

    @Test(
        "A bare -c means auto, and a letter is separated from a value with a =",
        arguments: [
            (["-c"], ["--continue=auto"]), (["-c", "u"], ["--continue=auto", "u"]),
            (["--continue", "no", "u"], ["--continue=no", "u"]), (["-c", "-q"], ["--continue=auto", "-q"]),
            (["--continue=must"], ["--continue=must"]), (["-cmust"], ["-cmust"]),
            (["-c", "--"], ["--continue=auto", "--"]),
            (["-bn=v", "u"], ["-b", "n=v", "u"]), (["-o=f"], ["-o", "=f"]), (["-of"], ["-of"]), (["-s=4"], ["-s=4"]),
            (["-b", "n=v"], ["-b", "n=v"]), (["--", "-c", "-bn=v"], ["--", "-c", "-bn=v"]),
        ])
    func spelled(typed: [String], expected: [String]) {
        #expect(ParserSpelling.spelled(typed) == expected)
    }

    @Test("A mark follows each mirror, in either form")
    func marked() {
        let mark = MirrorArguments.mark
        #expect(
            MirrorArguments.marked(["a", "--mirror", "b", "-o", "f", "--mirror=c", "--", "--mirror", "d"])
                == ["a", "--mirror=b", mark, "-o", "f", "--mirror=c", mark, "--", "--mirror", "d"])
    }

    // MARK: The order

    /// The arguments for the parser if the configuration file has this text.
    private static func prepared(_ typed: [String], _ text: String) throws -> [String] {
        try ArgumentPipeline(typed) { understood in
            // The stored options are those for the arguments that the first pass leaves.
            let command = understood.first == "resume" ? "resume" : nil
            return try StoredOptions(try ConfigurationFile(text, path: "c"), command: command)
        }.arguments
    }

    @Test("All passes apply to one command line")
    func all() throws {
        let typed = ["-fsSL", "a", "--mirror", "b", "-bn=v", "-c", "--no-config", "--", "-L", "-c"]
        #expect(
            try Self.prepared(typed, "max-connections = 3\n") == [
                "--max-connections=3", "--quiet", "a", "--mirror=b", MirrorArguments.mark, "-b", "n=v",
                "--continue=auto", "--", "-L", "-c",
            ])
    }

    @Test("Options of other programs are understood on the command line, not in the configuration file")
    func understoodBeforeStored() throws {
        #expect(
            try Self.prepared(["-L", "u"], "location\nuri-selector = x\n") == ["--location", "--uri-selector=x", "u"])
        // The error is the parser's, which names the option, and has no hint about a command line.
        #expect(try Self.prepared(["u"], "compressed\n") == ["--compressed", "u"])
    }

    @Test("A subcommand after --no-config has the settings of the environment that apply to it")
    func commandAfterNoConfig() throws {
        let environment = ["SEGDL_LIMIT_RATE": "1M", "SEGDL_INPUT_FILE": "l"]
        for typed in [
            ["--no-config", "resume", "f"], ["resume", "--no-config", "f"], ["resume", "f", "--no-config"],
        ] {
            let arguments = try ArgumentPipeline(typed, environment: environment).arguments
            #expect(arguments == ["resume", "--limit-rate=1M", "f"], "\(typed)")
        }
        #expect(try ArgumentPipeline(["--no-config", "list"], environment: environment).arguments == ["list"])
    }

    @Test("A subcommand after an option of another program is recognized before the settings are inserted")
    func commandAfterForeignOption() throws {
        #expect(
            try Self.prepared(["-L", "resume", "f"], "input-file = l\nmax-connections = 3\n")
                == ["resume", "--max-connections=3", "f"])
    }

    @Test("A mirror in a setting gets its mark, too")
    func storedBeforeMarked() throws {
        #expect(
            try Self.prepared(["a"], "mirror = b\n") == ["--mirror=b", MirrorArguments.mark, "a"])
    }

    @Test("The environment's settings pass through the same pipeline")
    func environment() throws {
        let pipeline = try ArgumentPipeline(
            ["-L", "a"], environment: ["SEGDL_MIRROR": "b", "SEGDL_RETRY": "3", "SEGDL_LOCATION": "1"])
        #expect(pipeline.arguments == ["--mirror=b", MirrorArguments.mark, "a"])
        #expect(pipeline.layers.environment.map(\.option.name) == ["retry"])
        #expect(try ArgumentPipeline(["status"], environment: ["SEGDL_MIRROR": "b"]).arguments == ["status"])
    }
}
