/// The options of one download as the state machine uses them, with what the engine adds.
@dynamicMemberLookup
package struct DownloadSettings: Hashable, Sendable {
    package var options: DownloadOptions
    /// The number of connections that was best when a file was last fetched from this host. An automatic search begins with it.
    package var connectionsKnown: Int?
    /// The sources' hosts, in order. Connections to equal hosts share one budget.
    package var hosts: [String] = [""]
    /// Whether it is fetched by one of many tasks of a job, and is retried with the patience of a job.
    package var isOfJob = false
    /// What the file must be, because other tasks fetch other ranges of the same version; nil if any version will do.
    package var requiredResource: RemoteResource?
    /// Whether the group decides when the host is asked again after a refusal, see ``RequestPace``.
    package var isPaced = false
    /// Whether the download begins paused.
    package var startsPaused = false
    /// The least length in bytes that a free connection takes over from another: near the end, smaller requests save
    /// time.
    package var stealLengthMinimum: Int64

    package init(_ options: DownloadOptions = DownloadOptions()) {
        self.options = options.clamped
        self.stealLengthMinimum = self.options.splitLengthMinimum ?? 16 << 10
    }

    package subscript<Value>(dynamicMember path: WritableKeyPath<DownloadOptions, Value>) -> Value {
        get { self.options[keyPath: path] }
        set { self.options[keyPath: path] = newValue }
    }

    /// The first source's host.
    package var host: String {
        get { self.hosts[0] }
        set { self.hosts = [newValue] }
    }

    /// The least length in bytes of a segment when a file is first divided.
    ///
    /// 1 MiB: below this a request costs more than it saves on a 50 ms path.
    package var planLengthMinimum: Int64 { self.options.splitLengthMinimum ?? 1 << 20 }

    package var retry: RetryPolicy {
        var policy = RetryPolicy()
        if let retries = self.options.retries {
            policy.retriesMax = retries
            policy.firstContactRetriesMax = retries
        }
        policy.delayFixed = self.options.retryDelay
        policy.timeMax = self.options.retryTime
        if self.isOfJob, self.options.retries == nil { policy.timeMin = RetryPolicy.timeMinOfJob }
        return policy
    }

    /// Why a first answer is not of the required resource; nil if it is.
    func difference(of current: RemoteResource) -> String? {
        guard let required = self.requiredResource else { return nil }
        return switch required.verdict(on: current) {
        case .same: nil
        case .changed(let why), .elsewhere(let why?): why
        case .elsewhere(nil): "it is from another place"
        case .unproven: "no validator proves that it is the version that the other tasks fetch"
        }
    }

    /// The length in bytes at which a body of unknown length is cut off.
    var streamLengthMaximum: Int64 { max(min(self.options.lengthMaximum, self.options.lengthExpected ?? .max), 0) }

    /// Why a resource of this length is not the one asked for; nil if it is.
    func mismatch(ofLength length: Int64, from host: String) -> DownloadError? {
        guard let expected = self.options.lengthExpected, length != expected else { return nil }
        return DownloadError(.integrity, "\(host) has a file of \(length) bytes, and it should have \(expected)")
    }

    /// Why a resource with a content coding is refused; nil if it is not.
    func refusal(ofCodingOf resource: RemoteResource, from host: String) -> DownloadError? {
        guard !self.options.acceptsContentCodings, let coding = resource.contentEncoding else { return nil }
        return DownloadError(
            .protocol,
            "\(host) sends the file with content coding \(coding.printable), although none was requested, and it would "
                + "be stored encoded",
            remedy: .acceptContentCoding)
    }
}
