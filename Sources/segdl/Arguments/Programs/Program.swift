import SegmentedDownload

/// A program that segdl replaces when it is started under the program's name, usually through a symbolic link.
///
/// The options mean what they mean to that program. An option without an exact equivalent is refused with its name: it is
/// never ignored unless the downloaded files are the same without it. The exit statuses are segdl's.
struct Program: Sendable {
    /// The file name under which segdl is started.
    let name: String
    fileprivate let options: [String: ProgramOption]
    /// Whether a long option may have its value after `=`.
    let hasAttachedValues: Bool
    /// Makes the command line for segdl.
    fileprivate let build: @Sendable (Program, ProgramLine) throws(CompatibilityOptions.Refusal) -> [String]

    init(
        _ name: String, hasAttachedValues: Bool, _ options: [ProgramOption],
        build: @escaping @Sendable (Program, ProgramLine) throws(CompatibilityOptions.Refusal) -> [String]
    ) {
        self.name = name
        self.hasAttachedValues = hasAttachedValues
        self.options = Dictionary(options.flatMap { option in option.names.map { ($0, option) } }) { first, _ in first }
        self.build = build
    }

    /// The program for the first argument of the process; nil if that is segdl.
    static func named(_ path: String) -> Program? {
        // apt gives the name of the method that segdl replaces, such as /usr/lib/apt/methods/http.
        if path.hasSuffix("/apt/methods/http") || path.hasSuffix("/apt/methods/https") { return .apt }
        return switch path.split(separator: "/").last {
        case "curl": .curl
        case "wget": .wget
        case "aria2c": .aria2c
        default: nil
        }
    }

    /// apt starts its methods without arguments.
    private static let apt = Program("apt's method", hasAttachedValues: false, []) { _, _ in ["apt-method"] }

    /// The arguments for segdl.
    ///
    /// - Parameter environment: The environment, which has settings of the program as well.
    /// - Throws: ``CompatibilityOptions/Refusal`` if one of the program's options has no equivalent.
    func translated(
        _ arguments: [String], environment: [String: String] = [:]
    ) throws(CompatibilityOptions.Refusal) -> [String] {
        var line = ProgramLine()
        line.environment = environment
        var rest = arguments[...]
        var isOperand = false
        while let word = rest.popFirst() {
            if isOperand || word == "-" || !word.hasPrefix("-") {
                line.operands.append(word)
            } else if word == "--" {
                isOperand = true
            } else if word.hasPrefix("--") {
                try self.readLong(word, &rest, &line)
            } else {
                try self.readShort(word, &rest, &line)
            }
        }
        if line.isVersion { return ["--version"] }
        return try self.arguments(for: line)
    }

    func arguments(for line: ProgramLine) throws(CompatibilityOptions.Refusal) -> [String] {
        try self.build(self, line)
    }

    private func readLong(
        _ word: String, _ rest: inout ArraySlice<String>, _ line: inout ProgramLine
    ) throws(CompatibilityOptions.Refusal) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        let name = self.hasAttachedValues ? parts[0] : word
        let attached = self.hasAttachedValues ? parts.dropFirst().first : nil
        guard let option = self.options[name] else { throw self.unknown(name) }
        if attached == nil, option.needsValue {
            guard let value = rest.popFirst() else { throw self.missing(name) }
            try line.apply(option, name, value, of: self)
        } else {
            try line.apply(option, name, attached, of: self)
        }
    }

    /// Letters, the last of which may have a value in the same word or the next, and wget's `-nc`.
    private func readShort(
        _ word: String, _ rest: inout ArraySlice<String>, _ line: inout ProgramLine
    ) throws(CompatibilityOptions.Refusal) {
        if let option = self.options[word], word.count > 2 {
            try line.apply(option, word, nil, of: self)
            return
        }
        var letters = word.dropFirst()
        while let letter = letters.popFirst() {
            let name = "-\(letter)"
            guard let option = self.options[name] else { throw self.unknown(name) }
            guard option.needsValue else {
                try line.apply(option, name, nil, of: self)
                continue
            }
            let value = letters.isEmpty ? rest.popFirst() : String(letters)
            guard let value else { throw self.missing(name) }
            try line.apply(option, name, value, of: self)
            return
        }
    }

    private func unknown(_ name: String) -> CompatibilityOptions.Refusal {
        self.refusal(name, "It has no equivalent")
    }

    private func missing(_ name: String) -> CompatibilityOptions.Refusal { self.refusal(name, "It needs a value") }

    func refusal(_ option: String, _ hint: String) -> CompatibilityOptions.Refusal {
        CompatibilityOptions.Refusal(
            word: "\(self.name)'s \(option.shown)",
            hint: "\(hint). segdl was started as \(self.name); use \(self.name) itself for this")
    }
}

/// A command line of another program, translated as far as options go.
struct ProgramLine {
    /// segdl's options.
    var options: [String] = []
    /// URLs, in their order.
    var operands: [String] = []
    /// Where the URLs go, in the order of the options.
    var outputs: [ProgramOption.Output] = []
    /// Options that change the meaning of others.
    var marks: Set<ProgramOption.Mark> = []
    /// Files with URLs.
    var lists: [String] = []
    var isVersion = false
    var environment: [String: String] = [:]

    fileprivate mutating func apply(
        _ option: ProgramOption, _ name: String, _ value: String?, of program: Program
    ) throws(CompatibilityOptions.Refusal) {
        // An empty value of aria2 is its default.
        if value == "", program.name == "aria2c" { return }
        switch option.meaning {
        case .same: break
        case .spelled(let arguments): self.options += arguments
        case .renamed(let option): self.options.append("\(option)=\(value ?? "")")
        case .value(let translate):
            guard let arguments = translate(value ?? "") else {
                throw program.refusal(name, "Its value \"\((value ?? "").shown)\" has no equivalent")
            }
            self.options += arguments
        case .choice(let choices):
            guard let arguments = choices[value ?? "true"] else {
                throw program.refusal(name, "Its value \"\((value ?? "").shown)\" has no equivalent")
            }
            self.options += arguments
        case .output: self.outputs.append(.file(value ?? ""))
        case .remoteName: self.outputs.append(.remoteName)
        case .operand: self.operands.append(value ?? "")
        case .list: self.lists.append(value ?? "")
        case .mark(let mark, let isInverted):
            guard value == nil || value == "true" || value == "false" else {
                throw program.refusal(name, "Its values are true and false")
            }
            if (value != "false") != isInverted { self.marks.insert(mark) } else { self.marks.remove(mark) }
        case .markFor(let expected, let mark):
            guard value == expected else { throw program.refusal(name, "Only \(name) \(expected) has an equivalent") }
            self.marks.insert(mark)
        case .version: self.isVersion = true
        case .refused(let hint, let off):
            guard let value, off.contains(value) else { throw program.refusal(name, hint) }
        }
    }
}

/// An option of another program: its names, and what it means.
struct ProgramOption: Sendable {
    enum Output: Hashable, Sendable {
        case file(String)
        /// The name in the URL.
        case remoteName
    }

    enum Mark: Hashable, Sendable {
        case followsRedirects, namesByResponse, namesAllByURL, resumes, forcesSequence, ignoresNetrc, overwrites
        case refusesExisting, replacesOlder
    }

    enum Meaning: Sendable {
        /// The files are the same with and without it.
        case same
        /// These arguments of segdl's.
        case spelled([String])
        /// segdl's option with the same value.
        case renamed(String)
        /// The arguments for a value; nil if it has no equivalent.
        case value(@Sendable (String) -> [String]?)
        /// What these values mean, for an option that is on without one.
        case choice([String: [String]])
        case output, remoteName, operand, list, version
        /// On without a value, as with the value `true`.
        case mark(Mark, inverted: Bool = false)
        /// On with this value.
        case markFor(String, Mark)
        /// It has no equivalent, except with values that turn it off. The text is the hint of the error.
        case refused(String, off: Set<String> = ["false"])
    }

    let names: [String]
    let needsValue: Bool
    let meaning: Meaning

    /// - Parameters:
    ///   - names: With spaces between them.
    ///   - value: Whether the next word is its value, if none is attached.
    init(_ names: String, value: Bool = false, _ meaning: Meaning) {
        self.names = names.split(separator: " ").map(String.init)
        self.meaning = meaning
        let isValued =
            switch meaning {
            case .renamed, .value, .output, .operand, .list, .markFor: true
            case .same, .spelled, .choice, .remoteName, .mark, .version, .refused: false
            }
        self.needsValue = value || isValued
    }
}

extension ProgramOption.Meaning {
    /// segdl's options with the same time in seconds. Zero, which means without limit elsewhere, has no equivalent.
    static func seconds(_ options: String...) -> Self {
        .value { text in Seconds(argument: text).map { _ in options.map { "\($0)=\(text)" } } }
    }

    /// A number of attempts; 0 is without end.
    static let attempts = Self.value { text in
        guard let number = Int(text), number >= 0 else { return nil }
        // More than a run will ever make.
        return ["--retry=\(number == 0 ? 1_000_000 : number)"]
    }
}
