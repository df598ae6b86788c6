import Foundation
import Origin

/// A scenario to measure.
struct Scenario: Sendable {
    let name: String
    let abstract: String
    /// The missing requirement; `nil` if there is none.
    var lack: @Sendable (Lab) -> String? = { _ in nil }
    let run: @Sendable (Lab) async throws -> [Table]

    static let all: [Scenario] = [
        .loopback, .secureLoopback, .segments, .connectionCap, .totalCap, .straggler, .concurrencyCap, .blackHole,
        .longPath, .losses, .roundTrips, .mixedList, .smallFiles, .resume, .start, .flatness,
    ]
}

// MARK: Limited by the machine

extension Scenario {
    static let loopback = Scenario(
        name: "loopback", abstract: "1 GiB from nginx on this machine, and the floor in C", lack: NginxServer.lack
    ) { lab in
        let length = 1 << 30
        return [
            try await onNginx(lab, "loopback", "1 GiB, nginx on loopback", length) { _ in
                let clients: [Client] = [
                    .limit(4, length: length), .segdl(), .segdl(1), .segdl(4), .segdl(8), .curl, .aria2(4), .aria2(16),
                    .axel(4), .wget2(4),
                ]
                return Contest.contestants(clients, lab, url: "http://127.0.0.1:\(NginxServer.port)/file")
            }
        ]
    }

    static let secureLoopback = Scenario(
        name: "tls", abstract: "the same, encrypted",
        lack: { NginxServer.lack($0) ?? ($0.program("openssl") == nil ? "openssl is not installed" : nil) }
    ) { lab in
        [
            try await onNginx(lab, "tls", "1 GiB, nginx on loopback, TLS", 1 << 30) { nginx in
                let clients: [Client] = [
                    .segdl(), .segdl(1), .segdl(4), .segdl(8), .curl, .aria2(4), .aria2(16), .wget2(4),
                ]
                return Contest.contestants(
                    clients, lab, url: "https://127.0.0.1:\(NginxServer.securePort)/file", trust: nginx.certificate)
            }
        ]
    }

    static let segments = Scenario(
        name: "segments", abstract: "1 GiB over 1 to 64 segments: speed, processor and memory", lack: NginxServer.lack
    ) { lab in
        var tables: [Table] = []
        for secure in [false, true] where !secure || lab.program("openssl") != nil {
            let name = secure ? "segments-tls" : "segments"
            let counts = [1, 2, 4, 8, 16, 32, 64]
            let table = try await onNginx(lab, name, "", 1 << 30) { nginx in
                let url =
                    secure
                    ? "https://127.0.0.1:\(NginxServer.securePort)/file" : "http://127.0.0.1:\(NginxServer.port)/file"
                return Contest.contestants(
                    counts.map { .segdl($0) }, lab, url: url, trust: secure ? nginx.certificate : nil)
            }
            let series = zip(counts, table.rows).map { count, row in
                var row = row
                row.name = "segdl"
                return (
                    value: Double(count), table: Table(name: name, title: "", length: table.length, rows: [row])
                )
            }
            tables.append(
                .series(name, "1 GiB, nginx on loopback\(secure ? ", TLS" : "")", parameter: "segments", series))
        }
        return tables
    }

    static let flatness = Scenario(
        name: "flatness", abstract: "whether the cost per GiB is the same for 1 and 16 GiB",
        lack: { lab in
            let space = try? URL(fileURLWithPath: lab.directory).resourceValues(forKeys: [.volumeAvailableCapacityKey])
            let free = space?.volumeAvailableCapacity ?? .max
            return NginxServer.lack(lab) ?? (free < 20 << 30 ? "it needs 20 GiB of disk space" : nil)
        }
    ) { lab in
        var series: [(value: Double, table: Table)] = []
        let root = try lab.empty("www")
        for gibibytes in [1, 4, 16] {
            let path = "\(root)/file"
            guard FileManager.default.createFile(atPath: path, contents: nil) || true,
                truncate(path, gibibytes << 30) == 0
            else { throw Lab.Problem("\(path) could not be created") }
            let table = try await NginxServer.with(lab, root: root) { nginx in
                let contest = Contest(
                    name: "flatness", title: "", length: Int64(gibibytes) << 30, server: nginx, limit: .seconds(300),
                    check: NginxServer.check(against: root))
                return try await contest.run(
                    Contest.contestants([.segdl()], lab, url: "http://127.0.0.1:\(NginxServer.port)/file"), lab)
            }
            series.append((Double(gibibytes), table))
        }
        try FileManager.default.removeItem(atPath: root)
        return [.series("flatness", "one file, nginx on loopback", parameter: "GiB", series)]
    }

    private static func onNginx(
        _ lab: Lab, _ name: String, _ title: String, _ length: Int,
        _ contestants: (NginxServer) -> [Contest.Contestant]
    ) async throws -> Table {
        _ = try lab.file("www-\(length)/file", length: length)
        let root = lab.path("www-\(length)")
        return try await NginxServer.with(lab, root: root) { nginx in
            let contest = Contest(
                name: name, title: title, length: Int64(length), server: nginx, warmUps: 1,
                check: NginxServer.check(against: root))
            return try await contest.run(contestants(nginx), lab)
        }
    }
}

// MARK: Limited by the path

extension Scenario {
    static let connectionCap = Scenario(
        name: "connection-cap", abstract: "an origin with a limit of 1 MiB/s per connection"
    ) { lab in
        // The most connections that segdl opens to one host by default.
        [
            try await shaped(
                lab, "connection-cap", "100 MiB, 1 MiB/s a connection", 100 << 20, ideal: 100.0 / 32, query: "rate=1M",
                [.segdl(), .segdl(16), .segdl(32), .aria2(16), .axel(16)])
        ]
    }

    static let totalCap = Scenario(
        name: "total-cap", abstract: "an origin with limits of 2 MiB/s per connection and 12 MiB/s in all"
    ) { lab in
        [
            try await shaped(
                lab, "total-cap", "200 MiB, 2 MiB/s a connection, 12 MiB/s in all", 200 << 20, ideal: 200.0 / 12,
                query: "rate=2M&total-rate=12M", [.segdl(), .segdl(6), .aria2(16)])
        ]
    }

    static let straggler = Scenario(name: "straggler", abstract: "one of four connections is slow") { lab in
        [
            try await shaped(
                lab, "straggler", "24 MiB, 2 MiB/s a connection, one of them 64 KiB/s, four connections", 24 << 20,
                ideal: 24.0 / (3 * 2 + 1.0 / 16), query: "rate=2M&slow=2:64K",
                [.segdl(4), .aria2(4), .axel(4)])
        ]
    }

    static let concurrencyCap = Scenario(
        name: "concurrency-cap", abstract: "an origin that allows two connections and answers others with 429"
    ) { lab in
        [
            try await shaped(
                lab, "concurrency-cap", "24 MiB, 3 MiB/s a connection, two allowed", 24 << 20, ideal: 24.0 / 6,
                query: "rate=3M&limit=2&limit-status=429", [.segdl(), .segdl(8), .aria2(8), .axel(8)])
        ]
    }

    static let blackHole = Scenario(name: "black-hole", abstract: "one of four connections stalls for good") {
        lab in
        [
            try await shaped(
                lab, "black-hole", "24 MiB, 2 MiB/s a connection, the first one silent after 1 MiB", 24 << 20,
                ideal: 24.0 / 8,
                query: "rate=2M&stall-after=1M:1", [.segdl(4), .segdl(), .aria2(4), .axel(4)])
        ]
    }

    private static func shaped(
        _ lab: Lab, _ name: String, _ title: String, _ length: Int64, ideal: Double, query: String, _ clients: [Client]
    ) async throws -> Table {
        try await withOrigin { origin in
            let contest = Contest(
                name: name, title: title, length: length, ideal: ideal, server: FixtureServer(origin: origin),
                check: FixtureServer.check("file", length: length))
            return try await contest.run(
                Contest.contestants(clients, lab, url: origin.url("/\(length)/file?\(query)")), lab)
        }
    }
}
