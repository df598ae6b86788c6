/// How long a response head is waited for, connecting included, unless ``DownloadOptions/headTimeout`` says so.
enum HeadPatience {
    /// 10 min, as long as a `Retry-After` is respected: a server that makes the file first, or reads it from tape, begins again with
    /// each request. The transport notices a dead peer sooner.
    static let ofOnly: Duration = .seconds(600)

    /// 30 s: something else brings bytes of the file meanwhile, or could.
    static let ofAdditional: Duration = .seconds(30)

    /// The time for additional requests is at least this many times that of the slowest head of the file.
    static let slownessFactor = 2
}

extension DownloadOptions {
    /// How long a response head is waited for.
    ///
    /// - Parameters:
    ///   - isOnly: Whether nothing else can bring bytes of the file: no other request is open, and each other source is gone or
    ///     has failed.
    ///   - slowest: The longest time that a head of the file has taken.
    package func headPatience(isOnly: Bool, slowest: Duration = .zero) -> Duration {
        if let given = self.headTimeout { return given }
        guard !isOnly else { return HeadPatience.ofOnly }
        return min(max(HeadPatience.ofAdditional, slowest * HeadPatience.slownessFactor), HeadPatience.ofOnly)
    }
}
