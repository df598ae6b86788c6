import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// What is to be said every time: long names of options, one a line, as `name = value`, or alone for flags; `#` begins a comment.
///
/// Behind a line `[host example.com]` it is said of the files of that host only, see ``HostSection``.
struct ConfigurationFile: Hashable {
    /// What is wrong with it.
    struct Problem: Error, Hashable {
        var code = ExitCode.usage
        let message: String
        var hint = "Put it right, or say --no-config"
    }

    /// What holds for all files.
    private(set) var settings: [Setting] = []
    /// In their order.
    private(set) var sections: [HostSection] = []

    /// The one that the environment names; absent where there is none.
    ///
    /// - Throws: ``Problem``: where it holds secrets, `exists` if another user owns it or can write to it, and `policy` if others than
    ///   its owner may read it.
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
        guard let secret = self.all.first(where: \.isSecret) else { return }
        do throws(DownloadError) {
            try file.requireTrustworthy(as: path.shellWord)
        } catch {
            throw Problem(
                code: .exists, message: "\(error.message); it holds secrets (line \(secret.line))",
                hint: error.hint ?? "")
        }
        guard file.isShared else { return }
        throw Problem(
            code: .policy,
            message: "\(path.shown) holds secrets (line \(secret.line)), and others than its owner may read it",
            hint: "chmod 600 \(path.shellWord)")
    }

    init(_ text: String, path: String) throws(Problem) {
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (index, line) in lines.enumerated() {
            do throws(Problem) {
                try self.read(Self.trimmed(line), number: index + 1)
            } catch {
                throw Problem(message: "\(path.shown), line \(index + 1): \(error.message)")
            }
        }
        for section in self.sections {
            guard let problem = section.problem else { continue }
            throw Problem(message: "\(path.shown), line \(section.line): \(problem)")
        }
    }

    private var all: [Setting] { self.settings + self.sections.flatMap(\.settings) }

    /// `$XDG_CONFIG_HOME/segdl/config`, as the XDG Base Directory Specification has it.
    private static func path(_ environment: (String) -> String?) -> String? {
        if let base = environment("XDG_CONFIG_HOME"), base.hasPrefix("/") { return "\(base)/segdl/config" }
        return environment("HOME").flatMap { $0.isEmpty ? nil : "\($0)/.config/segdl/config" }
    }

    private mutating func read(_ line: String, number: Int) throws(Problem) {
        guard !line.isEmpty, !line.hasPrefix("#") else { return }
        guard !line.hasPrefix("[") else {
            guard let section = HostSection(heading: line, line: number) else {
                throw Problem(
                    message: "a section is [host NAME…], and a name example.com, *.example.com or an address")
            }
            return self.sections.append(section)
        }
        let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(Self.trimmed)
        let name = parts[0].hasPrefix("--") ? String(parts[0].dropFirst(2)) : parts[0]
        guard name.count > 1,
            name.utf8.allSatisfy({ (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || $0 == 0x2D })
        else { throw Problem(message: "the long name of an option was expected") }
        let value = parts.count > 1 ? parts[1] : nil
        guard !self.sections.isEmpty else {
            return self.settings.append(Setting(line: number, name: name, value: .init(value, isFlag: nil)))
        }
        guard let option = HostOption(rawValue: name) else { throw Problem(message: HostOption.refusal(of: name)) }
        if let expected = option.expectation(unmetBy: value) { throw Problem(message: "\(name) is \(expected)") }
        let setting = Setting(line: number, name: name, value: .init(value, isFlag: option.isFlag))
        self.sections[self.sections.count - 1].settings.append(setting)
    }

    private static func trimmed(_ text: some StringProtocol) -> String {
        let start = text.drop { $0 == " " || $0 == "\t" }
        guard let end = start.lastIndex(where: { $0 != " " && $0 != "\t" }) else { return "" }
        return String(start[...end])
    }
}

/// A line of the configuration file: an option by its long name.
struct Setting: Hashable {
    enum Value: Hashable {
        case flag(Bool)
        case text(String)

        /// - Parameter isFlag: nil where that is not known; then `true` and `false` are a flag's.
        init(_ text: String?, isFlag: Bool?) {
            switch text {
            case nil: self = .flag(true)
            case "true" where isFlag != false: self = .flag(true)
            case "false" where isFlag != false: self = .flag(false)
            case let text?: self = .text(text)
            }
        }
    }

    let line: Int
    let name: String
    let value: Value

    /// What the command line would say.
    var arguments: [String] {
        switch self.value {
        case .flag(true): ["--\(self.name)"]
        case .flag(false): []
        case .text(let text): ["--\(self.name)=\(text)"]
        }
    }

    private var text: String {
        if case .text(let text) = self.value { text } else { "" }
    }

    /// What it is about, where saying that again is not enough to replace it: a field by its name, who the user is, a flag.
    var topic: String? {
        switch self.name {
        case "header": String(self.text.prefix { $0 != ":" }).lowercased()
        case "user-agent", "referer", "cookie": self.name
        case "user", "http-user", "password", "http-password", "http-passwd", "oauth2-bearer": "authorization"
        default: if case .flag = self.value { self.name } else { nil }
        }
    }

    /// Whether its value is nobody else's business.
    var isSecret: Bool {
        switch self.name {
        case "user", "http-user", "proxy-user": self.text.contains(":")
        case "password", "http-password", "http-passwd", "oauth2-bearer": true
        case "proxy", "all-proxy": self.text.contains("@")
        // Without one it is the name of a file.
        case "cookie": self.text.contains("=")
        case "header": ["auth", "cookie", "key", "secret", "token"].contains { self.topic?.contains($0) == true }
        default: false
        }
    }
}
