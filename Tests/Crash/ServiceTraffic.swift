import Origin

/// The bytes that the origin has sent twice because the daemon was killed, and how many it may have sent.
struct ServiceTraffic {
    /// 1 MiB: a connection's bytes are recorded for each block of this length, and those after the last one are lost.
    private static let lossMax: Int64 = 1 << 20

    /// What the origin does for one path.
    struct Sums {
        var sent: Int64 = 0
        var connections: Int64 = 0
    }

    private(set) var kills = 0
    /// The bytes of resumable files that may be fetched twice.
    private var allowed: Int64 = 0
    /// The kills that a resumable file has seen between its first byte and its end, by path.
    private var killsOfPath: [String: Int64] = [:]

    /// Notes that the daemon is about to be killed.
    ///
    /// - Parameter unfinished: The files that are not in place yet.
    mutating func noteKill(_ snapshot: OriginLog.Snapshot, unfinished: [ServiceFile]) {
        self.kills += 1
        let sums = Self.sums(snapshot)
        var paths: Set<String> = []
        for file in unfinished {
            guard !file.isAllOrNothing, let path = sums[file.path], path.sent > 0,
                paths.insert(file.path).inserted
            else { continue }
            self.killsOfPath[file.path, default: 0] += 1
            self.allowed += path.connections * Self.lossMax
        }
    }

    /// By path.
    static func sums(_ snapshot: OriginLog.Snapshot) -> [String: Sums] {
        var sums: [String: Sums] = [:]
        for request in snapshot.requests {
            let end = request.path.utf8.firstIndex(of: UInt8(ascii: "?")) ?? request.path.endIndex
            var path = sums[String(request.path[..<end])] ?? Sums()
            path.sent += request.bytesSent
            if !request.isFinished { path.connections += 1 }
            sums[String(request.path[..<end])] = path
        }
        return sums
    }

    /// Reports the figures.
    ///
    /// - Parameters:
    ///   - completed: The files that are complete.
    ///   - cancelled: The files that were fetched in part.
    /// - Returns: What is wrong.
    func conclude(
        _ snapshot: OriginLog.Snapshot, completed: [ServiceFile], cancelled: [ServiceFile], _ report: Report
    ) -> String? {
        let sums = Self.sums(snapshot)
        let partial = Set(cancelled.map(\.path))
        var twice: Int64 = 0
        var whole: Int64 = 0
        for (path, files) in Dictionary(grouping: completed, by: \.path) where !partial.contains(path) {
            let excess = (sums[path]?.sent ?? 0) - files.reduce(0) { $0 + $1.length }
            if files.contains(where: \.isAllOrNothing) {
                whole += excess
                continue
            }
            twice += excess
            if let kills = self.killsOfPath[path] {
                report.peak("KiB of one file at most, per kill that it saw", Int(excess / kills) >> 10)
            }
        }
        report.count("KiB of resumable files fetched twice per kill", Int(twice >> 10) / max(self.kills, 1))
        report.count("MiB of them in all", Int(twice >> 20))
        report.count("MiB allowed", Int(self.allowed >> 20))
        // A kill may cost each of these whole, so they have no limit.
        report.count("MiB of files without manifest or ranges", Int(whole >> 20))
        return twice <= self.allowed ? nil : "\(twice) bytes were fetched twice, not \(self.allowed)"
    }
}
