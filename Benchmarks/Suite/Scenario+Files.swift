import Foundation
import Origin

// MARK: Many, small, interrupted

extension Scenario {
    static let smallFiles = Scenario(
        name: "small-files", abstract: "a thousand files of 64 KiB, and ten thousand of 1 KiB", lack: NginxServer.lack
    ) { lab in
        [
            try await smallFiles(lab, "small-files", "1000 files of 64 KiB, 16 at once", count: 1000, length: 64 << 10),
            try await smallFiles(
                lab, "tiny-files", "10,000 files of 1 KiB, 16 at once", count: 10_000, length: 1 << 10),
        ]
    }

    private static func smallFiles(
        _ lab: Lab, _ name: String, _ title: String, count: Int, length: Int
    ) async throws -> Table {
        let names = (0..<count).map { "f\($0)" }
        for file in names { _ = try lab.file("www-\(name)/\(file)", length: length) }
        let root = lab.path("www-\(name)")
        let urls = names.map { "http://127.0.0.1:\(NginxServer.port)/\($0)" }
        let (list, curlList) = try lab.lists(of: urls)
        let commands: [Contest.Command] = [
            ("segdl -j 16", .segdl, { [lab.segdl, "-q", "-j", "16", "-i", list, "-d", $0] }),
            (
                "segdl --fsync none", .segdl,
                { [lab.segdl, "-q", "-j", "16", "--fsync", "none", "-i", list, "-d", $0] }
            ),
            // Synced like segdl's.
            ("client and files only", nil, { [lab.floor, list, $0] }),
            ("curl -Z", .curl, { ["curl", "-s", "-Z", "--parallel-max", "16", "--output-dir", $0, "-K", curlList] }),
            ("aria2c -j16", .aria2c, { ["aria2c", "-q", "-j16", "-i", list, "-d", $0] }),
            ("wget2 16", .wget2, { ["wget2", "-q", "--max-threads=16", "-i", list, "-P", $0] }),
        ]
        return try await NginxServer.with(lab, root: root) { nginx in
            let contest = Contest(
                name: name, title: title, length: Int64(count * length), server: nginx, warmUps: 1,
                check: NginxServer.check(names, against: root))
            return try await contest.run(Contest.contestants(commands, lab), lab)
        }
    }

    static let resume = Scenario(
        name: "resume",
        abstract: "killed in the middle and run again: bytes fetched twice, and whether the file is right"
    ) { lab in
        let length: Int64 = 64 << 20
        return [
            try await withOrigin { origin in
                let url = origin.url("/\(length)/file?total-rate=32M")
                let server = FixtureServer(origin: origin)
                let check = FixtureServer.check("file", length: length)
                var rows: [Table.Row] = []
                for client in [Client.segdl(4), .aria2(4), .axel(4)] where client.isPresent(in: lab) {
                    var row = Table.Row(name: client.name)
                    for _ in 0..<lab.rounds {
                        let directory = try lab.empty("out")
                        let command = client.command(
                            lab, Client.Transfer(url: url, output: "\(directory)/file", trust: nil))
                        server.begin()
                        // At half of the two seconds that the download takes.
                        try await lab.run([lab.tools, "measure", lab.path("figures")] + command, limit: .seconds(1))
                        let status = try await lab.run(
                            [lab.tools, "measure", lab.path("figures")] + command, limit: .seconds(60))
                        var run = Run(
                            figures: (try? String(contentsOfFile: lab.path("figures"), encoding: .utf8)) ?? "",
                            server.counts())
                        run.failure = status == 0 ? check(directory) : "exit \(status.map { "\($0)" } ?? "none")"
                        row.runs.append(run)
                    }
                    rows.append(row)
                }
                return Table(
                    name: "resume",
                    title: "64 MiB at 32 MiB/s, killed after a second; the second run, and the bytes sent in both",
                    length: length, ideal: 1, rows: rows)
            }
        ]
    }

    static let start = Scenario(
        name: "start", abstract: "time to print the version, and to fetch 64 KiB", lack: NginxServer.lack
    ) { lab in
        let length = 64 << 10
        _ = try lab.file("www-\(length)/file", length: length)
        let root = lab.path("www-\(length)")
        return try await NginxServer.with(lab, root: root) { nginx in
            var contest = Contest(
                name: "version", title: "--version", length: 0, server: nginx, warmUps: 2, check: { _ in nil })
            let programs = Client.Program.allCases.filter { $0 == .segdl || lab.program($0.rawValue) != nil }
            let versions = try await contest.run(
                programs.map { program in
                    Contest.Contestant(name: program.rawValue) { _ in
                        [program == .segdl ? lab.segdl : program.rawValue, "--version"]
                    }
                }, lab)
            contest = Contest(
                name: "short", title: "64 KiB, nginx on loopback", length: Int64(length), server: nginx, warmUps: 2,
                check: NginxServer.check(against: root))
            let short = try await contest.run(
                Contest.contestants(
                    [.segdl(), .curl, .aria2(1), .axel(1), .wget2(1)], lab,
                    url: "http://127.0.0.1:\(NginxServer.port)/file"), lab)
            return [versions, short]
        }
    }
}
