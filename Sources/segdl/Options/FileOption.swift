import ArgumentParser
import SegmentedDownload

/// The definition of an option that applies to one file: its names, its help, how its value is read, and what it does.
///
/// The command line, the configuration file, its host sections, environment variables and lists read such options by these
/// definitions. ``all`` has them. CONTRIBUTING.md lists the places that a new option touches.
struct FileOption: Sendable {
    /// Where an option can be given, besides the command line and a list.
    enum Scope: Hashable {
        /// Also in the configuration file, its host sections and the environment.
        case anywhere
        /// Nowhere else: its value is for one file.
        case oneFile
    }

    let name: String
    let aliases: [String]
    /// Short names, of which the value may be the rest of the word.
    let letters: [Character]
    let help: ArgumentHelp
    private let expectation: String
    private let objection: @Sendable (String) -> String?
    let isFlag: Bool
    /// All values, if they are few words.
    private let words: [String]
    private(set) var scope = Scope.anywhere
    /// Whether it says where the file goes. `resume` and `verify` have paths of their own.
    private(set) var isPlacement = false
    /// Whether a value is secret, so that it is neither shown nor read from a file that others may read.
    private(set) var isSecret: @Sendable (String) -> Bool = { _ in false }
    /// Whether ``isSecret`` is true of some value.
    private(set) var mayBeSecret = false
    private let edit: @Sendable (String) -> (text: String, action: FileEdit.Action)?

    /// An option with a value.
    init<Value: Sendable>(
        _ name: String, aliases: [String] = [], letters: String = "", _ form: ValueForm<Value>, _ help: String,
        _ apply: @escaping @Sendable (inout RequestDraft, Value) -> Void
    ) {
        self.name = name
        self.aliases = aliases
        self.letters = Array(letters)
        self.help = ArgumentHelp(help, valueName: form.name)
        self.expectation = form.expectation
        self.objection = form.objection
        self.words = form.words
        self.isFlag = false
        self.edit = { text in
            guard let value = form.read(text) else { return nil }
            let action: FileEdit.Action = { draft in apply(&draft, value) }
            // A path may have been expanded.
            return (value as? String ?? text, action)
        }
    }

    /// An option that is on or off: `--NAME` and `--no-NAME`.
    init(
        flag name: String, letters: String = "", _ help: String,
        _ apply: @escaping @Sendable (inout RequestDraft, Bool) -> Void
    ) {
        self.name = name
        self.aliases = []
        self.letters = Array(letters)
        self.help = ArgumentHelp(help)
        self.expectation = "true or false"
        self.objection = { _ in nil }
        self.words = []
        self.isFlag = true
        self.edit = { text in
            guard let value = Bool(text) else { return nil }
            let action: FileEdit.Action = { draft in apply(&draft, value) }
            return (text, action)
        }
    }

    func forOneFile() -> Self { with(self) { $0.scope = .oneFile } }
    func placing() -> Self { with(self) { $0.isPlacement = true } }
    func secret(_ isSecret: @escaping @Sendable (String) -> Bool = { _ in true }) -> Self {
        with(self) {
            $0.isSecret = isSecret
            $0.mayBeSecret = true
        }
    }

    /// Nil if the text is not a value of this option.
    func callAsFunction(_ text: String) -> FileEdit? {
        self.edit(text).map { FileEdit(option: self, text: $0.text, action: $0.action) }
    }

    /// What a value must be, and why this one is not.
    func expectation(insteadOf text: String?) -> String {
        // A secret is not described either.
        let objection = text.flatMap { self.mayBeSecret ? nil : self.objection($0) }
        return self.expectation + (objection.map { ": \($0)" } ?? "")
    }

    var names: [String] { [self.name] + self.aliases }

    /// The option with this long name.
    static func named(_ name: String) -> FileOption? { Self.byName[name] }

    private static let byName = Dictionary(
        uniqueKeysWithValues: Self.all.flatMap { option in option.names.map { ($0, option) } })

    /// An edit by a line of text: `segments` with `4`, a flag with `true`, `false` or nothing, `no-` before a flag's name.
    ///
    /// - Returns: Nil if there is no option of this name; an edit of nil if the value is not one of it.
    static func edit(_ name: String, _ value: String?) -> (option: FileOption, edit: FileEdit?)? {
        if let option = Self.named(name) {
            guard option.isFlag else { return (option, value.flatMap { option($0) }) }
            return (option, option(value ?? "true"))
        }
        guard name.hasPrefix("no-"), let option = Self.named(String(name.dropFirst(3))), option.isFlag else {
            return nil
        }
        return (option, Bool(value ?? "true").flatMap { option("\(!$0)") })
    }
}

/// An option of one file with a value that was read.
struct FileEdit: Sendable {
    typealias Action = @Sendable (inout RequestDraft) -> Void

    let option: FileOption
    /// The value as it was written, but with a path expanded.
    let text: String
    let action: Action
}

private func with<Value>(_ value: Value, _ change: (inout Value) -> Void) -> Value {
    var value = value
    change(&value)
    return value
}

// MARK: The command line

extension Option where Value == FileEdit? {
    /// A file option, by its long name.
    init(file name: String) {
        let option = FileOption.known(name)
        self.init(
            name: option.specification, help: option.help, completion: option.completion, transform: option.read)
    }
}

extension Option where Value == [FileEdit] {
    /// A file option that can be repeated, by its long name.
    init(wrappedValue: [FileEdit], file name: String) {
        let option = FileOption.known(name)
        self.init(
            wrappedValue: wrappedValue, name: option.specification, help: option.help, completion: option.completion,
            transform: option.read)
    }
}

extension Flag where Value == Bool? {
    /// A file option that is on or off, by its long name. The property's name must be the option's in camel case.
    init(file name: String) {
        let option = FileOption.known(name)
        self.init(name: option.specification, inversion: .prefixedNo, help: option.help)
    }
}

extension FileOption {
    fileprivate static func known(_ name: String) -> FileOption {
        guard let option = Self.named(name) else { preconditionFailure("FileOption.all has no \(name)") }
        return option
    }

    fileprivate var specification: NameSpecification {
        NameSpecification(
            self.letters.map { self.isFlag ? .customShort($0) : .customShort($0, allowingJoined: true) }
                + self.names.map { .customLong($0) })
    }

    /// What a shell offers for the value.
    fileprivate var completion: CompletionKind {
        switch self.help.valueName {
        case "FILE", "NAME=VALUE|FILE": .file()
        case "DIR": .directory
        default: self.words.isEmpty ? .default : .list(self.words)
        }
    }

    fileprivate func read(_ text: String) throws -> FileEdit {
        guard let edit = self(text) else { throw ValidationError("expected \(self.expectation(insteadOf: text))") }
        return edit
    }
}

/// Options of the command line of which some apply to one file.
protocol FileOptionGroup: ParsableArguments {}

extension FileOptionGroup {
    /// The file options that were given, in the order of their declaration.
    var edits: [FileEdit] {
        Mirror(reflecting: self).children.flatMap { child -> [FileEdit] in
            switch child.value {
            case let option as Option<FileEdit?>: return option.wrappedValue.map { [$0] } ?? []
            case let option as Option<[FileEdit]>: return option.wrappedValue
            case let flag as Flag<Bool?>:
                // The property `_remoteTime` belongs to the option `remote-time`.
                let name = (child.label ?? "").dropFirst().reduce(into: "") { name, character in
                    name += character.isUppercase ? "-\(character.lowercased())" : String(character)
                }
                return flag.wrappedValue.flatMap { FileOption.named(name)?("\($0)") }.map { [$0] } ?? []
            default: return []
            }
        }
    }
}
