// MARK: Short and long files

extension Scenario {
    /// Programs without options, because what is measured is how many files they fetch at once by themselves.
    static let mixedList = Scenario(
        name: "mixed-list",
        abstract: "a thousand files of 64 KiB and four of 256 MiB, alone and together, 400 Mbit/s and 20 ms away",
        lack: Link.lack
    ) { lab in
        let path = Link.Path(megabits: 400, roundTripMilliseconds: 20, lossPerMillion: 100)
        let short = (0..<1000).map { "short\($0)" }
        let long = (0..<4).map { "long\($0)" }
        for name in short { _ = try lab.file("www-mixed/\(name)", length: 64 << 10) }
        for name in long { _ = try lab.file("www-mixed/\(name)", length: 256 << 20) }
        let root = lab.path("www-mixed")
        return try await path.with(lab) { client, server in
            try await NginxServer.with(lab, root: root, address: Link.Path.address, prefix: server) { nginx in
                var tables: [Table] = []
                for (title, names) in [
                    ("short", short), ("long", long), ("short-long", short + long), ("long-short", long + short),
                ] {
                    let length = names.reduce(Int64(0)) { $0 + ($1.hasPrefix("long") ? 256 << 20 : 64 << 10) }
                    let contest = Contest(
                        name: "mixed-list-\(title)", title: "\(names.count) files, \(title), \(path)", length: length,
                        ideal: Double(length) * 8 / Double(path.megabits) / 1e6, server: nginx, prefix: client,
                        check: NginxServer.check(names, against: root))
                    tables.append(try await contest.run(try lists(of: names, lab), lab))
                }
                return tables
            }
        }
    }

    /// The installed programs that fetch the files of a list.
    private static func lists(of names: [String], _ lab: Lab) throws -> [Contest.Contestant] {
        let urls = names.map { "http://\(Link.Path.address):\(NginxServer.port)/\($0)" }
        let (list, curlList) = try lab.lists(of: urls)
        let commands: [Contest.Command] = [
            ("segdl", .segdl, { [lab.segdl, "-q", "-i", list, "-d", $0] }),
            ("segdl -j 5", .segdl, { [lab.segdl, "-q", "-j", "5", "-i", list, "-d", $0] }),
            ("curl -Z", .curl, { ["curl", "-s", "-Z", "--output-dir", $0, "-K", curlList] }),
            ("aria2c", .aria2c, { ["aria2c", "-q", "-i", list, "-d", $0] }),
        ]
        return Contest.contestants(commands, lab)
    }
}
