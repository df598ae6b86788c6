import ChildProcess
import Foundation

// MARK: Far away

extension Scenario {
    static let longPath = Scenario(
        name: "long-path", abstract: "200 Mbit/s, 80 ms round trip, one packet in a thousand lost", lack: Link.lack
    ) { lab in
        let path = Link.Path()
        return [
            try await path.contest(
                "long-path", "100 MiB, \(path)", lab,
                [.segdl(), .segdl(16), .segdl(32), .aria2(16), .axel(16), .curl])
        ]
    }

    static let losses = Scenario(name: "losses", abstract: "the same path with other loss rates", lack: Link.lack) {
        lab in
        var series: [(value: Double, table: Table)] = []
        for loss in [0, 100, 1000, 5000] {
            let path = Link.Path(lossPerMillion: loss)
            series.append((Double(loss) / 10_000, try await path.contest("losses", "", lab, peers)))
        }
        return [.series("losses", "100 MiB, 200 Mbit/s, 80 ms, Reno", parameter: "loss %", series)]
    }

    static let roundTrips = Scenario(
        name: "round-trips", abstract: "the same path with other round trips", lack: Link.lack
    ) {
        lab in
        var series: [(value: Double, table: Table)] = []
        for milliseconds in [10, 40, 80, 160] {
            let path = Link.Path(roundTripMilliseconds: milliseconds)
            series.append((Double(milliseconds), try await path.contest("round-trips", "", lab, peers)))
        }
        return [.series("round-trips", "100 MiB, 200 Mbit/s, 0.1 % lost, Reno", parameter: "round trip ms", series)]
    }

    private static let peers: [Client] = [.segdl(), .aria2(16), .axel(16)]
}

/// A path between two network namespaces; a program passes packets from one TUN device to another.
enum Link {
    static func lack(_ lab: Lab) -> String? {
        if getuid() != 0 || !FileManager.default.fileExists(atPath: "/dev/net/tun") {
            return "it needs root and /dev/net/tun"
        }
        if lab.program("ip") == nil { return "ip (iproute2) is not installed" }
        return NginxServer.lack(lab)
    }

    struct Path: CustomStringConvertible {
        var megabits = 200
        var roundTripMilliseconds = 80
        var lossPerMillion = 1000
        /// The sender's congestion control.
        var congestionControl = "reno"

        var description: String {
            "\(self.megabits) Mbit/s, \(self.roundTripMilliseconds) ms, \((Double(self.lossPerMillion) / 10_000).text(2)) % lost, "
                + self.congestionControl
        }

        /// The queue of a router on that path: as many packets as are in flight.
        private var queue: Int { max(self.megabits * 1000 * self.roundTripMilliseconds / 8 / 1500, 20) }

        func contest(_ name: String, _ title: String, _ lab: Lab, _ clients: [Client]) async throws -> Table {
            let length = 100 << 20
            _ = try lab.file("www-\(length)/file", length: length)
            let root = lab.path("www-\(length)")
            return try await self.with(lab) { client, server in
                try await NginxServer.with(lab, root: root, address: Self.address, prefix: server) { nginx in
                    let contest = Contest(
                        name: name, title: title, length: Int64(length),
                        ideal: Double(length) * 8 / Double(self.megabits) / 1e6,
                        server: nginx, prefix: client, check: NginxServer.check(against: root))
                    return try await contest.run(
                        Contest.contestants(clients, lab, url: "http://\(Self.address):\(NginxServer.port)/file"), lab)
                }
            }
        }

        /// The address of the server at its other end.
        static let address = "10.77.0.2"

        /// Creates the path for the duration of `body`, which receives the command prefixes for both ends.
        func with<Value: Sendable>(
            _ lab: Lab, _ body: ([String], [String]) async throws -> Value
        ) async throws -> Value {
            // Names of this run alone; a device name has at most 15 letters.
            let ends = [
                End(name: "segdl-c\(getpid())", address: "10.77.0.1", other: Self.address),
                End(name: "segdl-s\(getpid())", address: Self.address, other: "10.77.0.1"),
            ]
            let out = open(lab.path("link.out"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            defer { close(out) }
            let link = try ChildProcess(
                [
                    lab.tools, "link", ends[0].name, ends[1].name, "\(self.megabits)",
                    "\(Double(self.roundTripMilliseconds) / 2)",
                    "\(self.lossPerMillion)", "\(self.queue)", "1",
                ], output: out, errors: out)
            let result: Result<Value, any Error>
            do {
                while try String(contentsOfFile: lab.path("link.out"), encoding: .utf8) != "ready\n" {
                    guard !link.hasEnded else { throw Lab.Problem("the link could not be created") }
                    try await Task.sleep(for: .milliseconds(10))
                }
                for end in ends { try await end.make(lab, congestionControl: self.congestionControl) }
                result = .success(try await body(ends[0].prefix, ends[1].prefix))
            } catch {
                result = .failure(error)
            }
            for end in ends { try await lab.run(["ip", "netns", "del", end.name]) }
            link.signal(SIGTERM)
            _ = await link.wait()
            return try result.get()
        }
    }

    private struct End {
        let name: String
        let address: String
        let other: String

        var prefix: [String] { ["ip", "netns", "exec", self.name] }

        func make(_ lab: Lab, congestionControl: String) async throws {
            for words in [
                "ip netns add \(self.name)", "ip link set \(self.name) netns \(self.name)",
                "ip -n \(self.name) addr add \(self.address)/32 dev \(self.name)", "ip -n \(self.name) link set lo up",
                "ip -n \(self.name) link set \(self.name) up",
                "ip -n \(self.name) route add \(self.other)/32 dev \(self.name)",
            ] {
                guard try await lab.run(words.split(separator: " ").map(String.init)) == 0 else {
                    throw Lab.Problem("\(words): \(lab.lastWords)")
                }
            }
            // One run must not reuse the path metrics of another.
            let settings = [
                "net.ipv4.tcp_congestion_control=\(congestionControl)", "net.ipv4.tcp_no_metrics_save=1",
                "net.ipv4.tcp_wmem=4096 65536 16777216", "net.ipv4.tcp_rmem=4096 131072 16777216",
            ]
            guard try await lab.run(self.prefix + ["sysctl", "-qw"] + settings) == 0 else {
                throw Lab.Problem("sysctl: \(lab.lastWords)")
            }
        }
    }
}
