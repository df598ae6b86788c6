import SegmentedDownload
import SegmentedDownloadCore

extension Remedy {
    /// What to do, in terms of the command's options. The description for a remedy that the table lacks.
    var commandLine: String { Self.commandLines[self] ?? self.description }

    private static let commandLines: [Remedy: String] = [
        .keepBothOrReplace: "Keep both with --if-exists rename, or replace it with --if-exists overwrite",
        .adoptKeepBothOrReplace:
            "If it is a partial file, complete it with segdl adopt FILE URL. Otherwise keep both with --if-exists rename, or replace it with --if-exists overwrite",
        .repairKeepBothOrReplace:
            "If it is a damaged copy, repair it with segdl verify --repair FILE URL; if it is a partial file, complete it with segdl adopt FILE URL. Otherwise keep both with --if-exists rename, or replace it with --if-exists overwrite",
        .keepBothOrChooseName: "Keep both with --if-exists rename, or choose another name with -o",
        .nameFile: "Name a file with -o",
        .shortenName: "Choose a shorter name with -o",
        .chooseDirectory: "Choose another directory with -d",
        .freeSpaceOrChooseDirectory: "Free some space, or choose another directory with -d",
        .moveAwayOrChooseName: "Move it away, or choose another name with -o",
        .trustOrMoveAway:
            "If you trust it: chmod go-w, then run the command again. Else move it away or choose another name with -o",
        .resumeInterrupted: "Resume it with segdl resume PATH",
        .startOver: "Start over with --continue no",
        .startOverOnChange: "Start over with --on-change restart",
        .startTasksOver:
            "To start over, stop all tasks, remove the directory FILE.segdl-tasks, and run segdl --shard I/N --one-file again",
        .allowStartingOver: "Start over with --continue auto",
        .fetchAgain: "Fetch it again with --if-exists overwrite",
        .fetchAgainOrElsewhere: "Fetch it again with --if-exists overwrite, or from another server",
        .giveDigest: "Give its digest with --checksum",
        .giveDigestOrStartOver: "Give its digest with --checksum, or start over with --continue no",
        .giveOwnDigestOrStartOver:
            "Start over with --continue no. If it fails again, what the server states may be out of date: a digest that you give with --checksum counts instead, if its algorithm is the same or stronger",
        .chooseDigest: "Give the right one with --checksum",
        .giveCorrectSourceOrDigest: "Give only the correct source, or give its digest with --checksum",
        .giveCredentials: "Give credentials with -u NAME:PASSWORD, or keep them in ~/.netrc and use --netrc",
        .giveProxyCredentials: "Give the proxy's credentials with --proxy-user NAME:PASSWORD",
        .ignoreProxy: "To ignore it, use --noproxy '*'",
        .trustAuthority: "Trust its authority with --cacert FILE",
        .giveCertificate: "Give one that it accepts with --cert FILE and --key FILE",
        .skipNameCheck: "The connection may be intercepted; --insecure skips this check",
        .allowDowngrade: "Allow it with --allow-downgrade, if you trust the network",
        .acceptContentCoding: "Store it as sent with segdl --content-coding URL, and decode it afterwards",
        .allowScheme: "Allow it with --proto",
    ]
}

extension DownloadError {
    /// What to do about it, as the command shows it.
    var commandLineAdvice: String? { self.hint ?? self.remedy?.commandLine }
}
