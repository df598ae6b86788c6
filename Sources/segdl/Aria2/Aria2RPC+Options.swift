import SegmentedDownload
import SegmentedDownloadService

extension Aria2RPC {
    // MARK: One download

    func getOption(_ parameters: RPCParameters) async throws -> RPCValue {
        .object(self.options(of: try await self.find(parameters)).mapValues { .string($0) })
    }

    /// The options that ``Aria2Options`` accepts, so that a front-end can add a download again with them. Fields and
    /// credentials are secret.
    private func options(of found: Found) -> [String: String] {
        switch found {
        case .entry(let entry): return self.options(of: entry.request)
        case .row(let row):
            // The history does not have the options of a download: those of the service are in their place.
            var options = self.defaults
            options["dir"] = row.path.removingLastComponent().string
            options["out"] = row.path.lastComponent?.string
            return options
        }
    }

    private func options(of request: DownloadRequest) -> [String: String] {
        var options = [
            "max-connection-per-server": "\(self.control.policy.settings.limits.connectionsPerHost)",
            "max-download-limit": "\(request.bytesPerSecond ?? 0)",
            "lowest-speed-limit": "\(request.speedMinimum ?? 0)",
            "timeout": Self.seconds(request.stallTimeout),
            "continue": "\(request.continuation != .no)",
            "allow-overwrite": "\(request.ifExists == .overwrite)",
            "auto-file-renaming": "\(request.ifExists == .rename)",
            "conditional-get": "\(request.ifExists == .newer)",
            "remote-time": "\(request.keepsRemoteTime)",
            "file-allocation": request.allocates ? "falloc" : "none",
        ]
        let place = Aria2Status.place(of: request)
        options["dir"] = place.directory
        options["out"] = place.file?.lastPathComponent
        // A number that segdl chooses is left out.
        if case .exactly(let count) = request.segments { options["split"] = "\(count)" }
        options["min-split-size"] = request.splitLengthMinimum.map { "\($0)" }
        options["max-tries"] = request.retries.map { "\($0)" }
        options["retry-wait"] = request.retryDelay.map { Self.seconds($0) }
        options["checksum"] = request.digests.first.map { "\(Self.name(of: $0.algorithm))=\($0.hex)" }
        return options
    }

    private static func seconds(_ time: Duration) -> String { "\(Int64(Seconds(time).value.rounded(.up)))" }

    /// The name of a digest in aria2.
    private static func name(of algorithm: ExpectedDigest.Algorithm) -> String {
        switch algorithm {
        case .crc32, .crc32c, .crc64nvme, .md5: algorithm.rawValue
        case .sha1: "sha-1"
        case .sha256: "sha-256"
        case .sha512: "sha-512"
        }
    }

    /// Changes options. Those that have the value already are ignored, because front-ends send back all that they got. As in
    /// aria2, a running download starts again after most changes: see ``DownloadQueue/update(_:_:)``.
    func changeOption(_ parameters: RPCParameters) async throws -> RPCValue {
        let found = try await self.find(parameters)
        let given = try parameters.object(1)
        guard case .entry(let entry) = found, entry.state != .cancelling else {
            throw RPCError("Cannot change option for GID#\(found.gid)")
        }
        let current = self.options(of: found)
        let changed = given.filter { name, value in value.text == nil || value.text != current[name] }
        let options = try Aria2Options(changed, url: entry.request.source.string)
        if !options.values.isEmpty { try await self.perform(.change, entry.id, options: options.values) }
        return Self.ok
    }

    // MARK: The service

    var globalOptions: RPCValue { .object(self.currentGlobalOptions.mapValues { .string($0) }) }

    /// The options of a download that says nothing else.
    private var defaults: [String: String] {
        guard var draft = try? RequestDraft.sample() else { return [:] }
        // A mistake in the configuration is reported when a download is added.
        try? self.control.layers.current.apply(to: &draft)
        var options = self.options(of: draft.finished)
        options["out"] = nil
        return options
    }

    /// The options of the service, and the defaults of a download.
    private var currentGlobalOptions: [String: String] {
        var options = self.defaults
        let limits = self.control.policy.settings.limits
        options["dir"] = self.control.directory.string
        options["max-concurrent-downloads"] = "\(limits.downloads)"
        options["max-overall-download-limit"] = "\(limits.bytesPerSecond ?? 0)"
        options["max-overall-upload-limit"] = "0"
        return options
    }

    /// Changes options of the service. Options that have the value already are ignored, as in ``changeOption(_:)``.
    func changeGlobalOption(_ parameters: RPCParameters) async throws -> RPCValue {
        let current = self.currentGlobalOptions
        var changes: [String: String] = [:]
        for (name, value) in try parameters.object(0).sorted(by: { $0.key < $1.key }) {
            try Aria2Option.check(name, value)
            guard let text = value.text, !text.isEmpty, text != current[name] else { continue }
            if let setting = Aria2Option.settings[name] {
                changes[setting] = text
            } else if name == "dir" {
                throw RPCError("dir cannot be changed by RPC: give it with each download")
            } else if Aria2Option.same.contains(name) || Aria2Option.translated.contains(name) {
                throw RPCError("\(name) is an option of a download: give it with each, or in the configuration file")
            }
        }
        if !changes.isEmpty { try await self.control.policy.update(changes) }
        return Self.ok
    }
}
