/// The files of a download.
enum Role: String, CaseIterable, Hashable, Sendable {
    case destination, part, manifest, draft, directory
    /// The files of another file's part, which segdl keeps under a name of its own.
    case asidePart, asideManifest
    /// A short file while it has no name.
    case unnamed

    /// The roles that have a path.
    static let named = Self.allCases.filter { $0 != .unnamed }

    /// The path of a file, or what the path of one without a name begins with.
    func path(in folder: String) -> String {
        switch self {
        case .unnamed: "\(folder)/#"
        case .destination: "\(folder)/\(Bench.fileName)"
        case .part: "\(folder)/\(Bench.fileName).segdl-part"
        case .manifest: "\(folder)/\(Bench.fileName).segdl"
        case .draft: "\(folder)/\(Bench.fileName).segdl-new"
        case .directory: folder
        case .asidePart: "\(folder)/\(Bench.fileName).segdl-old.segdl-part"
        case .asideManifest: "\(folder)/\(Bench.fileName).segdl-old.segdl"
        }
    }
}

/// A fault injected into one of the command's file system calls.
///
/// `strace` counts per thread. With the file given too, nearly every call of a run is the N-th of its kind.
struct Injection: Hashable, Sendable, CustomStringConvertible {
    enum Effect: Hashable, Sendable {
        /// The process is killed, and the call does not run.
        case kill
        /// The call fails and does not run.
        case error(String)
    }

    var call: String
    var role: Role
    var occurrence: Int
    var effect: Effect

    var description: String {
        let what =
            switch self.effect {
            case .kill: "KILL"
            case .error(let name): name
            }
        return "\(what) at \(self.call) \(self.occurrence) of \(self.role)"
    }

    /// The command under strace with this fault.
    func tracing(_ command: [String], _ scenario: Scenario, on bench: Bench) -> [String] {
        let (mode, effect): ([String], String) =
            switch self.effect {
            // With its filter in the kernel, strace 6.1 does not deliver the signals to inject.
            case .kill: ([], "signal=KILL")
            case .error(let name): (["--seccomp-bpf"], "error=\(name)")
            }
        let calls = scenario.faults.isEmpty ? self.call : "\(self.call),?renameat2"
        return ["strace", "-f"] + mode + ["-qq", "-s", "0", "-o", bench.trace, "-e", "trace=\(calls)"]
            // Without a path every call of the kind is counted.
            + (self.role == .unnamed ? [] : ["-P", bench.path(self.role)]) + scenario.faults
            + ["-e", "inject=\(self.call):\(effect):when=\(self.occurrence)"] + command
    }
}
