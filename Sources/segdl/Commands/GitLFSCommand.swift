import ArgumentParser
import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// Downloads objects for Git LFS.
struct GitLFSCommand: SegdlSubcommand {
    static let configuration = CommandConfiguration(
        commandName: "git-lfs-agent",
        abstract: "Downloads objects for Git LFS, which starts it.",
        usage: "segdl git-lfs-agent [options]",
        discussion: """
            git lfs pull downloads with this command, and resumes interrupted objects, if the server chooses the \
            transfer NAME, usually segdl, from those that are configured:

              git config --global lfs.customtransfer.NAME.path segdl
              git config --global lfs.customtransfer.NAME.args git-lfs-agent
              git config --global lfs.customtransfer.NAME.direction download

            Git LFS then runs this command, and writes messages to its standard input:

              segdl git-lfs-agent
            """
    )

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("The directory for objects, on the repository's file system. (default: .git/lfs/tmp)"))
    var dir: String?

    @OptionGroup(title: "Network") var network: NetworkOptions

    func perform() async -> ExitCode {
        await CommandOutput.withClient(self.network) { client, output in
            let directory = try self.dir ?? Self.defaultDirectory()
            try await TransferAgent(client: client, directory: directory, output: output).run()
            return .ok
        }
    }

    /// `lfs/tmp` in the directory of the repository that the current one belongs to.
    private static func defaultDirectory() throws(DownloadError) -> String {
        var directory = getenv("GIT_DIR").map { String(cString: $0) } ?? ".git"
        // In a worktree or a submodule, .git is a file with the path.
        if let facts = FileFacts(directory), !facts.isDirectory {
            let text = String(decoding: try InputFile(path: directory).contents(), as: UTF8.self)
            let prefix = "gitdir: "
            guard text.hasPrefix(prefix) else {
                throw DownloadError(
                    .file, "\(directory.shown) does not name a repository", hint: "Give a directory with -d")
            }
            directory = String(text.dropFirst(prefix.count).prefix { !$0.isNewline })
        }
        guard FileFacts(directory)?.isDirectory == true else {
            throw DownloadError(
                .file, "the current directory is not the top of a Git repository", hint: "Give a directory with -d")
        }
        return Path.join(directory, "lfs/tmp")
    }
}
