import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The configuration file: long names of options, one on a line, as `name = value`, or alone for flags, see
/// ``ConfigurationLine``.
///
/// The lines below `[host example.com]` apply to files from that host, see ``HostSection``.
struct ConfigurationFile {
    /// Why the file cannot be used.
    struct Problem: Error, Hashable {
        var code = ExitCode.usage
        let message: String
        var hint = "Correct it, or use --no-config"
    }

    private let path: String
    /// The options of the run.
    private(set) var settings: [Setting] = []
    /// The options that apply to files from all hosts.
    private(set) var edits: [FileEdit] = []
    /// The sections in their order.
    private(set) var sections: [HostSection] = []
    /// The first line that contains a secret.
    private var secretLine: Int?

    /// The file that the environment names; nil if there is none.
    ///
    /// - Throws: ``Problem``. If the file contains secrets: `exists` if another user owns it or can write to it,
    ///   and `policy` if another user can read it.
    init?(_ environment: (String) -> String?) throws(Problem) {
        guard let path = Self.path(environment) else { return nil }
        var facts = stat()
        guard stat(path, &facts) == 0 else { return nil }
        let file: GuardedFile
        do throws(DownloadError) {
            file = try GuardedFile(contentsOf: path)
        } catch {
            throw Problem(message: error.message)
        }
        try self.init(String(decoding: file.bytes, as: UTF8.self), path: path)
        guard let secretLine else { return }
        do throws(DownloadError) {
            try file.requireTrustworthy(as: path.shellWord)
        } catch {
            throw Problem(
                code: .exists, message: "\(error.message); it contains secrets (line \(secretLine))",
                hint: error.commandLineAdvice ?? "")
        }
        guard file.isShared else { return }
        throw Problem(
            code: .policy,
            message: "\(path.shown) contains secrets (line \(secretLine)), and other users can read it",
            hint: "chmod 600 \(path.shellWord)")
    }

    init(_ text: String, path: String) throws(Problem) {
        self.path = path
        // A byte order mark, which editors on Windows write.
        let start = text.unicodeScalars.first == "\u{FEFF}" ? 1 : 0
        let content = Substring(text.unicodeScalars.dropFirst(start))
        let lines = content.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (index, line) in lines.enumerated() {
            do throws(Problem) {
                try self.read(try ConfigurationLine(line), number: index + 1)
            } catch {
                throw Problem(message: "\(path.shown), line \(index + 1): \(error.message)")
            }
        }
        for section in self.sections {
            guard let problem = section.problem else { continue }
            throw Problem(message: "\(path.shown), line \(section.line): \(problem)")
        }
    }

    /// `$XDG_CONFIG_HOME/segdl/config` (XDG Base Directory Specification).
    private static func path(_ environment: (String) -> String?) -> String? {
        if let base = environment("XDG_CONFIG_HOME"), base.hasPrefix("/") { return "\(base)/segdl/config" }
        return environment("HOME").flatMap { $0.isEmpty ? nil : "\($0)/.config/segdl/config" }
    }

    private mutating func read(_ line: ConfigurationLine, number: Int) throws(Problem) {
        switch line {
        case .empty: return
        case .heading(let text):
            guard let section = HostSection(heading: text, line: number) else {
                throw Problem(
                    message: "a section begins with [host NAME…]; a NAME is example.com, *.example.com or an address")
            }
            self.sections.append(section)
        case .option(let name, let value): try self.read(name, value, number: number)
        }
    }

    private mutating func read(_ name: String, _ value: String?, number: Int) throws(Problem) {
        guard name.count > 1,
            name.utf8.allSatisfy({ (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D })
        else { throw Problem(message: "the line does not begin with the long name of an option") }
        guard let (option, edit) = FileOption.edit(name, value), self.sections.isEmpty || option.scope == .anywhere
        else {
            guard self.sections.isEmpty else { throw Problem(message: HostSection.refusal(of: name)) }
            let setting = Setting(
                name: name, value: Setting.Value(value, isFlag: nil), place: "\(self.path.shown), line \(number)")
            if setting.isSecret { self.secretLine = self.secretLine ?? number }
            return self.settings.append(setting)
        }
        guard let edit, self.sections.isEmpty || Self.isAccepted(edit) else {
            throw Problem(message: "\(name) must be \(option.expectation(insteadOf: value))")
        }
        if option.isSecret(edit.text) { self.secretLine = self.secretLine ?? number }
        if self.sections.isEmpty {
            self.edits.append(edit)
        } else {
            self.sections[self.sections.count - 1].edits.append(edit)
        }
    }

    /// Whether a request with only this option is valid and needs nothing from outside the configuration file.
    private static func isAccepted(_ edit: FileEdit) -> Bool {
        // A cookie file would apply to all hosts.
        if edit.option.name == "cookie", !edit.text.contains("=") { return false }
        guard var draft = try? RequestDraft.sample() else { return false }
        edit.action(&draft)
        return (try? draft.request.validate()) != nil
    }
}

/// An option of the run, by its long name.
struct Setting: Hashable {
    enum Value: Hashable {
        case flag(Bool)
        case text(String)

        /// - Parameter isFlag: Nil if unknown. The values `true` and `false` then mean a flag.
        init(_ text: String?, isFlag: Bool?) {
            switch text {
            case nil: self = .flag(true)
            case "true" where isFlag != false: self = .flag(true)
            case "false" where isFlag != false: self = .flag(false)
            case let text?: self = .text(text)
            }
        }
    }

    let name: String
    let value: Value
    /// The line or the variable that sets it, for messages.
    var place = ""

    /// The arguments that set it.
    var arguments: [String] {
        switch self.value {
        case .flag(true): ["--\(self.name)"]
        case .flag(false): []
        case .text(let text): ["--\(self.name)=\(text)"]
        }
    }

    /// Whether its value is secret.
    var isSecret: Bool {
        guard case .text(let text) = self.value else { return false }
        return switch self.name {
        case "rpc-secret": true
        case "proxy-user": text.contains(":")
        case "proxy", "all-proxy": text.contains("@")
        default: false
        }
    }

    /// Whether some value of an option is secret.
    static func mayBeSecret(_ name: String) -> Bool {
        FileOption.named(name)?.mayBeSecret
            ?? ["rpc-secret", "proxy-user", "proxy", "all-proxy"].contains(name)
    }
}
