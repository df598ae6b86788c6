/// What to do about a failure, as a value that a program can act on.
///
/// The description names the library's API. An application may render a remedy in its own terms. Remedies may be added in
/// any version, so a `switch` needs a `default`.
public struct Remedy: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// A stable word in lower case, with underscores.
    public let rawValue: String

    public init(rawValue: String) {
        self.rawValue = rawValue
    }

    // MARK: The destination

    /// Keep the existing file and save to a numbered name, or replace it.
    public static let keepBothOrReplace = Remedy(rawValue: "keep_both_or_replace")
    /// Complete the existing file if it is another program's partial file. Otherwise keep it and save to a numbered name,
    /// or replace it.
    public static let adoptKeepBothOrReplace = Remedy(rawValue: "adopt_keep_both_or_replace")
    /// Repair the existing file in place if it is a damaged or partial copy. Otherwise keep it and save to a numbered name, or
    /// replace it.
    public static let repairKeepBothOrReplace = Remedy(rawValue: "repair_keep_both_or_replace")
    /// Save to a numbered name, or choose another destination.
    public static let keepBothOrChooseName = Remedy(rawValue: "keep_both_or_choose_name")
    /// Name a file: the destination is a directory or a special file.
    public static let nameFile = Remedy(rawValue: "name_file")
    /// Choose a shorter file name.
    public static let shortenName = Remedy(rawValue: "shorten_name")
    /// Choose another directory.
    public static let chooseDirectory = Remedy(rawValue: "choose_directory")
    /// Free some space, or choose another directory.
    public static let freeSpaceOrChooseDirectory = Remedy(rawValue: "free_space_or_choose_directory")
    /// Move the file in the way, or choose another destination.
    public static let moveAwayOrChooseName = Remedy(rawValue: "move_away_or_choose_name")
    /// Deny other users write access to the file if its content is trusted. Otherwise move it, or choose another
    /// destination.
    public static let trustOrMoveAway = Remedy(rawValue: "trust_or_move_away")

    // MARK: Resuming and starting over

    /// Resume the interrupted download of the file first.
    public static let resumeInterrupted = Remedy(rawValue: "resume_interrupted")

    /// Start over instead of resuming.
    public static let startOver = Remedy(rawValue: "start_over")
    /// Start over if the remote file has changed.
    public static let startOverOnChange = Remedy(rawValue: "start_over_on_change")
    /// The tasks that fetch one file together must begin again.
    public static let startTasksOver = Remedy(rawValue: "start_tasks_over")
    /// Allow the download to start over if there is nothing to resume.
    public static let allowStartingOver = Remedy(rawValue: "allow_starting_over")
    /// Fetch the whole file again and replace the existing one.
    public static let fetchAgain = Remedy(rawValue: "fetch_again")
    /// Fetch the whole file again, possibly from another server, and replace the existing one.
    public static let fetchAgainOrElsewhere = Remedy(rawValue: "fetch_again_or_elsewhere")

    // MARK: Digests and sources

    /// Give the file's digest.
    public static let giveDigest = Remedy(rawValue: "give_digest")
    /// Give the file's digest, or start over instead of resuming.
    public static let giveDigestOrStartOver = Remedy(rawValue: "give_digest_or_start_over")
    /// Give the file's digest if the one that the server states is wrong, or start over.
    public static let giveOwnDigestOrStartOver = Remedy(rawValue: "give_own_digest_or_start_over")
    /// Give the correct one of several digests.
    public static let chooseDigest = Remedy(rawValue: "choose_digest")
    /// Give only the source with the correct file, or give the file's digest.
    public static let giveCorrectSourceOrDigest = Remedy(rawValue: "give_correct_source_or_digest")

    // MARK: Access and connections

    /// Give credentials for the origin.
    public static let giveCredentials = Remedy(rawValue: "give_credentials")
    /// Give credentials for the proxy.
    public static let giveProxyCredentials = Remedy(rawValue: "give_proxy_credentials")
    /// Correct the variable that names the proxy, or use no proxy.
    public static let ignoreProxy = Remedy(rawValue: "ignore_proxy")
    /// Trust the authority that issued the server's certificate.
    public static let trustAuthority = Remedy(rawValue: "trust_authority")
    /// Give a client certificate that the server accepts.
    public static let giveCertificate = Remedy(rawValue: "give_certificate")
    /// Skip the check of the server's name, if an interception of the connection can be ruled out.
    public static let skipNameCheck = Remedy(rawValue: "skip_name_check")
    /// Allow redirects from `https` to `http`, if the network can be trusted.
    public static let allowDowngrade = Remedy(rawValue: "allow_downgrade")
    /// Allow the scheme of the URL.
    public static let allowScheme = Remedy(rawValue: "allow_scheme")
    /// Accept that the file is stored with the server's content coding.
    public static let acceptContentCoding = Remedy(rawValue: "accept_content_coding")

    // MARK: Descriptions

    /// What to do, in one sentence without a final period. The raw value for a remedy that this version lacks.
    public var description: String { Self.descriptions[self] ?? self.rawValue }

    /// Every remedy of this version.
    package static let all: [Remedy] = Self.descriptions.keys.sorted { $0.rawValue < $1.rawValue }

    private static let descriptions: [Remedy: String] = [
        .keepBothOrReplace: "Set ifExists to .rename to keep both, or to .overwrite to replace it",
        .adoptKeepBothOrReplace:
            "If it is a partial file, begin with DownloadClient.adoption(of:for:). Otherwise set ifExists to .rename to keep both, or to .overwrite to replace it",
        .repairKeepBothOrReplace:
            "If it is a damaged or partial copy, begin with DownloadClient.adoption(of:for:). Otherwise set ifExists to .rename to keep both, or to .overwrite to replace it",
        .keepBothOrChooseName: "Set ifExists to .rename to keep both, or choose another destination",
        .nameFile: "Give the path of a file as the destination",
        .shortenName: "Choose a destination with a shorter name",
        .chooseDirectory: "Choose a destination in another directory",
        .freeSpaceOrChooseDirectory: "Free some space, or choose a destination in another directory",
        .moveAwayOrChooseName: "Move it away, or choose another destination",
        .trustOrMoveAway:
            "If you trust it, deny other users write access. Otherwise move it away or choose another destination",
        .resumeInterrupted: "Resume the interrupted download, or delete its part and its manifest",
        .startOver: "Set continuation to .no to start over",
        .startOverOnChange: "Set onChange to .restart to start over",
        .startTasksOver: "To start over, stop all tasks of the file, remove their directory, and run them again",
        .allowStartingOver: "Set continuation to .auto to start over",
        .fetchAgain: "Set ifExists to .overwrite to fetch it again",
        .fetchAgainOrElsewhere: "Set ifExists to .overwrite to fetch it again, possibly from another server",
        .giveDigest: "Give the file's digest",
        .giveDigestOrStartOver: "Give the file's digest in digests, or set continuation to .no to start over",
        .giveOwnDigestOrStartOver:
            "Set continuation to .no to start over. If it fails again, what the server states may be out of date: a digest in digests counts instead, if its algorithm is the same or stronger",
        .chooseDigest: "Choose the correct digest and give it in digests",
        .giveCorrectSourceOrDigest: "Give only the correct source, or give the file's digest in digests",
        .giveCredentials: "Set the request's credentials, or the configuration's netrc",
        .giveProxyCredentials: "Give the proxy's credentials with ProxyPolicy.authenticated(user:password:)",
        .ignoreProxy: "Correct the variable, or set proxies to an empty ProxyPolicy",
        .trustAuthority: "Set the authorityFile of the configuration's trust to the authority's certificate",
        .giveCertificate: "Set the trust's certificateFile and keyFile to a certificate that the server accepts",
        .skipNameCheck:
            "The connection may be intercepted; set the trust's verifiesCertificates to false to skip this check",
        .allowDowngrade: "Set the configuration's allowsDowngrade to allow it, if you trust the network",
        .acceptContentCoding: "Set acceptsContentCodings to true to store it as sent, and decode it afterwards",
        .allowScheme: "Add the scheme to the configuration's schemes to allow it",
    ]
}
