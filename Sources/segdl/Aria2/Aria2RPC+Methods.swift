import SegmentedDownload
import SegmentedDownloadService

extension Aria2RPC {
    static let multicall = "system.multicall"
    /// The methods that need no secret.
    static let openMethods: Set<String> = ["system.listMethods", "system.listNotifications"]

    static let methods: [String: Method] = [
        "aria2.addUri": { try await $0.addURI($1) },
        "aria2.addMetalink": { try await $0.addMetalink($1) },
        "aria2.addTorrent": { _, _ in throw RPCError("BitTorrent is not supported") },
        "aria2.remove": { try await $0.remove($1) },
        "aria2.forceRemove": { try await $0.remove($1) },
        "aria2.pause": { try await $0.pause($1) },
        "aria2.forcePause": { try await $0.pause($1) },
        "aria2.pauseAll": { rpc, _ in try await rpc.pauseAll() },
        "aria2.forcePauseAll": { rpc, _ in try await rpc.pauseAll() },
        "aria2.unpause": { try await $0.unpause($1) },
        "aria2.unpauseAll": { rpc, _ in try await rpc.unpauseAll() },
        "aria2.changePosition": { try await $0.changePosition($1) },
        "aria2.changeUri": { try await $0.changeURI($1) },
        "aria2.tellStatus": { try await $0.tellStatus($1) },
        "aria2.tellActive": { try await $0.tellActive($1) },
        "aria2.tellWaiting": { try await $0.tellWaiting($1) },
        "aria2.tellStopped": { try await $0.tellStopped($1) },
        "aria2.getUris": { try await $0.getURIs($1) },
        "aria2.getFiles": { try await $0.getFiles($1) },
        "aria2.getServers": { try await $0.getServers($1) },
        "aria2.getPeers": { try await $0.getPeers($1) },
        "aria2.getOption": { try await $0.getOption($1) },
        "aria2.changeOption": { try await $0.changeOption($1) },
        "aria2.getGlobalOption": { rpc, _ in rpc.globalOptions },
        "aria2.changeGlobalOption": { try await $0.changeGlobalOption($1) },
        "aria2.getGlobalStat": { rpc, _ in try await rpc.getGlobalStat() },
        "aria2.purgeDownloadResult": { rpc, _ in try await rpc.purgeDownloadResult() },
        "aria2.removeDownloadResult": { try await $0.removeDownloadResult($1) },
        "aria2.getVersion": { _, _ in
            .object([
                "version": .string(SegmentedDownloadVersion.string),
                "enabledFeatures": .array(["HTTPS", "Message Digest", "Metalink"].map { .string($0) }),
            ])
        },
        "aria2.getSessionInfo": { rpc, _ in .object(["sessionId": .string(rpc.session)]) },
        // The queue is durable after every change.
        "aria2.saveSession": { _, _ in .string("OK") },
        "aria2.shutdown": { rpc, _ in rpc.shutDown() },
        "aria2.forceShutdown": { rpc, _ in rpc.shutDown() },
        "system.listMethods": { _, _ in
            .array((Self.methods.keys + [Self.multicall]).sorted().map { .string($0) })
        },
        "system.listNotifications": { _, _ in .array(Self.notifications.map { .string($0) }) },
    ]

    static let ok = RPCValue.string("OK")

    private func shutDown() -> RPCValue {
        self.stop()
        return Self.ok
    }

    // MARK: Notifications

    private static let notifications = ["Start", "Pause", "Stop", "Complete", "Error"].map { "aria2.onDownload\($0)" }

}

/// Turns events into the messages that a client with a WebSocket gets.
struct Aria2Notifications {
    /// The downloads of which the client knows that they run.
    private var started: Set<String> = []

    /// The message for an event; nil if aria2 has none.
    mutating func message(for entry: EventLog.Entry) -> String? {
        guard let event = entry.event, let gid = entry.file?.id?.rawValue, QueueEntry.ID(rawValue: gid) != nil else {
            return nil
        }
        let name: String
        switch event {
        // Before a server has answered, as in aria2.
        case .state(.probing):
            guard self.started.insert(gid).inserted else { return nil }
            name = "Start"
        case .paused: name = "Pause"
        case .cancelled: name = "Stop"
        case .completed: name = "Complete"
        case .failed: name = "Error"
        case .started, .progress, .segment, .retrying, .checkpoint, .note, .state: return nil
        }
        if name != "Start" { self.started.remove(gid) }
        return #"{"jsonrpc":"2.0","method":"aria2.onDownload\#(name)","params":[{"gid":"\#(gid)"}]}"#
    }
}
