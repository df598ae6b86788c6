import SegmentedDownload
import SegmentedDownloadService
import ServiceLifecycle
import Synchronization

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif
#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Applies the service's limits: at once when they are changed, and hours and free space as time passes.
final class ServicePolicy: Service {
    /// Why no download runs.
    enum Hold: String, Sendable {
        case hours, space
    }

    /// A change of settings, and who waits until it applies.
    private struct Change: Sendable {
        let texts: [String: String]
        let answer: CheckedContinuation<Result<Void, DownloadError>, Never>
    }

    private struct State {
        /// The texts that were set, by name.
        var texts: [String: String] = [:]
        var settings: ServiceSettings
        /// Nil while the queue is not held.
        var held: Hold?
        /// The values of settings that were not set.
        var configured: ServiceSettings
        var network: NetworkPolicy
        /// The changes that are to be made; nil once none is made any more.
        var changes: [Change]? = []
    }

    /// 5 s: how late a limit of hours or space may be noticed.
    private static let interval: Duration = .seconds(5)
    /// The name in the queue's database.
    private static let key = "limits"

    private let queue: DownloadQueue
    private let state: Mutex<State>
    private let (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// - Parameters:
    ///   - queue: It is held, and released once the stored settings apply.
    ///   - configuration: Has the values of settings that were not set.
    init(of queue: DownloadQueue, _ configuration: DownloadConfiguration) {
        self.queue = queue
        let configured = ServiceSettings(configuration)
        self.state = Mutex(State(settings: configured, configured: configured, network: configuration.network))
    }

    var held: Hold? { self.state.withLock { $0.held } }
    var settings: ServiceSettings { self.state.withLock { $0.settings } }
    /// The texts of the settings that were changed.
    var texts: [String: String] { self.state.withLock { $0.texts } }

    /// Applies the stored settings, and then changes of settings, hours and free space, until the service shuts down.
    func run() async throws {
        defer { self.end() }
        do {
            try await self.restore()
        } catch let error as DownloadError where error.code == .cancelled {
            return try await gracefulShutdown()  // The queue has ended.
        }
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                while (try? await Task.sleep(for: Self.interval)) != nil { self.wake.yield() }
            }
            // The queue was created held.
            var isHeld = true
            self.wake.yield()
            // In one loop: two changes at once would lose one, and two holds could come in the wrong order.
            for await _ in self.wakes.cancelOnGracefulShutdown() {
                var results: [(Change, Result<Void, DownloadError>)] = []
                for change in self.changes() { results.append((change, await self.perform(change.texts))) }
                await self.look(&isHeld)
                for (change, result) in results { change.answer.resume(returning: result) }
            }
            tasks.cancelAll()
        }
    }

    private func changes() -> [Change] {
        self.state.withLock { state in
            defer { if state.changes != nil { state.changes = [] } }
            return state.changes ?? []
        }
    }

    private func end() {
        let changes = self.state.withLock { state in
            defer { state.changes = nil }
            return state.changes ?? []
        }
        for change in changes { change.answer.resume(returning: .failure(Self.isOver)) }
    }

    private static let isOver = DownloadError(.cancelled, "the service has ended")

    /// Applies the settings that an earlier run stored. Those of a later version are left out.
    private func restore() async throws {
        guard let text = try await self.queue.setting(Self.key),
            let texts = try? JSONDecoder().decode([String: String].self, from: Data(text.utf8))
        else { return }
        try await self.apply(texts.filter { ServiceSetting.named($0.key) != nil })
    }

    /// Changes settings. They are durable and effective when the call returns.
    ///
    /// - Parameter changes: Texts by name; `default` for the configured value.
    /// - Throws: ``DownloadError`` with code `usage` if a name or text is invalid. Then nothing is changed.
    func update(_ changes: [String: String]) async throws(DownloadError) {
        let result = await withCheckedContinuation { answer in
            let isOver = self.state.withLock { state in
                state.changes?.append(Change(texts: changes, answer: answer))
                return state.changes == nil
            }
            if isOver { answer.resume(returning: .failure(Self.isOver)) } else { self.wake.yield() }
        }
        try result.get()
    }

    private func perform(_ changes: [String: String]) async -> Result<Void, DownloadError> {
        do throws(DownloadError) {
            var texts = self.texts
            for (name, text) in changes {
                guard ServiceSetting.named(name) != nil else {
                    throw DownloadError(
                        .usage, "there is no limit \(name.shown)",
                        hint: "There are \(ServiceSetting.all.map(\.name).joined(separator: ", "))")
                }
                texts[name] = text == "default" ? nil : text
            }
            let (_, stored) = (try self.settings(texts), Self.json(texts))
            try await self.queue.set(Self.key, to: stored)
            try await self.apply(texts)
            return .success(())
        } catch {
            return .failure(error)
        }
    }

    /// Uses another configuration for what was not set.
    func reconfigure(_ configuration: DownloadConfiguration) async throws(DownloadError) {
        self.state.withLock { state in
            state.configured = ServiceSettings(configuration)
            state.network = configuration.network
        }
        try await self.update([:])
    }

    private static func json(_ texts: [String: String]) -> String {
        (try? JSONEncoder().encode(texts)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }

    private func settings(_ texts: [String: String]) throws(DownloadError) -> ServiceSettings {
        var settings = self.state.withLock { $0.configured }
        for (name, text) in texts { try ServiceSetting.named(name)?.apply(text, to: &settings) }
        return settings
    }

    private func apply(_ texts: [String: String]) async throws(DownloadError) {
        let settings = try self.settings(texts)
        self.state.withLock { state in
            state.texts = texts
            state.settings = settings
        }
        try await self.queue.update(settings.limits)
        var network = self.state.withLock { $0.network }
        network.allowsMetered = settings.usesMetered
        try await self.queue.client().update(network: network)
    }

    /// Holds or releases the queue. If that fails, the next look tries again.
    private func look(_ isHeld: inout Bool) async {
        let (settings, held) = self.state.withLock { ($0.settings, $0.held) }
        var reason: Hold?
        if !settings.hours.contains(Self.minute()) {
            reason = .hours
        } else if settings.space.pauseBelow > 0, await !self.hasSpace(settings.space, isPaused: held == .space) {
            reason = .space
        }
        if isHeld != (reason != nil) {
            guard (try? await self.queue.hold(reason != nil)) != nil else { return }
            isHeld = reason != nil
        }
        self.state.withLock { $0.held = reason }
    }

    /// Whether enough space is free in every directory that a download would write to next.
    private func hasSpace(_ limit: FreeSpaceLimit, isPaused: Bool) async -> Bool {
        guard let entries = try? await self.queue.entries() else { return true }
        var directories: Set<String> = []
        for entry in entries where entry.state == .active || entry.state == .waiting {
            switch entry.request.destination {
            case .file(let path): directories.insert(path.removingLastComponent().string)
            case .directory(let directory, _): directories.insert(directory.string)
            case .descriptor, .stream: continue
            }
            // Each costs a system call, and most files are in few directories.
            if directories.count == 64 { break }
        }
        // A file system that does not answer blocks the thread.
        let paths = directories
        return await EngineThreads.aside {
            paths.allSatisfy { directory in
                guard let free = Self.freeBytes(directory) else { return true }
                return limit.allows(free: free, isPaused: isPaused)
            }
        }
    }

    /// Nil if it is unknown, such as for a directory that does not exist yet.
    private static func freeBytes(_ directory: String) -> Int64? {
        var status = statvfs()
        guard statvfs(directory.isEmpty ? "." : directory, &status) == 0 else { return nil }
        return Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
            .partialValue
    }

    /// Minutes since midnight in local time, in the time zone that the system has now.
    ///
    /// musl reads `/etc/localtime` once, whatever happens to it.
    private static func minute() -> Int {
        var now = time(nil)
        var local = tm()
        // `localtime_r` may keep the zone that it read first; `tzset` reads it again if it has changed.
        tzset()
        localtime_r(&now, &local)
        return Int(local.tm_hour) * 60 + Int(local.tm_min)
    }
}
