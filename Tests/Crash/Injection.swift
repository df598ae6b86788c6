/// The files a download touches.
enum Role: String, CaseIterable, Hashable, Sendable {
    case destination, part, manifest, draft, directory
    /// Those of another file's part, kept under a name of its own.
    case asidePart, asideManifest

    func path(in folder: String) -> String {
        switch self {
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

/// Something done to the command at one of its file system calls.
///
/// `strace` counts per thread; naming the file as well makes nearly every call of a run the N-th of its kind.
struct Injection: Hashable, Sendable, CustomStringConvertible {
    enum Effect: Hashable, Sendable {
        /// The process dies, and the call does not happen.
        case kill
        /// The call fails and does not happen.
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

    /// The command under a tracer that does this to it.
    func tracing(_ command: [String], _ scenario: Scenario, on bench: Bench) -> [String] {
        let (mode, effect): ([String], String) =
            switch self.effect {
            // With its filter in the kernel, strace 6.1 does not deliver signals it is to inject.
            case .kill: ([], "signal=KILL")
            case .error(let name): (["--seccomp-bpf"], "error=\(name)")
            }
        let calls = scenario.faults.isEmpty ? self.call : "\(self.call),?renameat2"
        return ["strace", "-f"] + mode + ["-qq", "-s", "0", "-o", bench.trace, "-e", "trace=\(calls)"]
            + ["-P", bench.path(self.role)] + scenario.faults
            + ["-e", "inject=\(self.call):\(effect):when=\(self.occurrence)"] + command
    }
}
