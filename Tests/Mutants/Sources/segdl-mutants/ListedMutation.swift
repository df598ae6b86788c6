import Mutation

/// A line of Tests/Mutations/mutations.tsv.
struct ListedMutation {
    /// The position of the line, from 1.
    let number: Int
    let name: String
    /// Relative to the package.
    let path: String
    /// The resulting fault.
    let meaning: String
    /// The file without and with the mutation.
    let (original, text): (String, String)

    static func all(_ workspace: Workspace) throws -> [ListedMutation] {
        try rows(workspace.listed).enumerated().map { index, fields in
            guard fields.count == 4 else { throw Problem("\(workspace.listed): \(fields[0]) needs four fields.") }
            let path = "Sources/" + fields[1]
            let (source, output) = (workspace.root + "/" + path, workspace.output(0))
            let command = Command(arguments: ["perl", "-0pe", fields[2], source])
            guard try command.run(output: output) == .succeeded else {
                throw Problem("\(fields[0]): perl fails; see \(output)")
            }
            return ListedMutation(
                number: index + 1, name: fields[0], path: path, meaning: fields[3], original: try read(source),
                text: try read(output))
        }
    }

    func canBeFound(by judge: Judge) -> Bool {
        // Only the worlds of the queue run the service's code.
        if self.path.hasPrefix("Sources/SegmentedDownloadService/") { return judge.name == "queue" }
        // Only the crash states have several tasks that fetch one file.
        return !self.path.contains("/Jobs/") || judge.name == "crash-states"
    }
}

extension Judge {
    /// The simulated worlds that find listed mutations.
    ///
    /// Worlds of the whole engine find most mutations quickly; the state-machine worlds find those that need a rare
    /// order of events.
    static func worlds(_ workspace: Workspace, count: Int) -> [Judge] {
        [
            ["run", "--count", String(count), "--failures-max", "1"], ["machine", "--count", String(count * 10)],
            ["queue", "--count", String(count)],
            ["crash-states", "--one-file", "--count", String(count), "--each", "50"],
        ].map { arguments in
            // A timeout of 15 minutes.
            Judge(
                name: arguments[0],
                arguments: [workspace.programs + "/segdl-simulate"] + arguments + ["--workers", "1"], seconds: 90)
        }
    }
}
