/// The command line of each program for the same work.
struct Client: Sendable {
    enum Program: String, CaseIterable, Sendable {
        case segdl, curl, aria2c, axel, wget2
    }

    let name: String
    let program: Program?
    /// The command that fetches a URL into a file, trusting the certificates in a file.
    private let words: @Sendable (Lab, Transfer) -> [String]

    struct Transfer: Sendable {
        var url: String
        var output: String
        var trust: String?
    }

    func command(_ lab: Lab, _ transfer: Transfer) -> [String] { self.words(lab, transfer) }

    /// With a number of segments, or with the number that segdl chooses; its events are kept.
    static func segdl(_ segments: Int? = nil, _ more: [String] = []) -> Client {
        Client(name: "segdl \(segments.map { "-s \($0)" } ?? "-s auto")", program: .segdl) { lab, transfer in
            // As users run it, plus events, which show the number of connections.
            [lab.segdl, "-q", "--json"] + (segments.map { ["-s", "\($0)", "-x", "64"] } ?? []) + more
                + (transfer.trust.map { ["--cacert", $0] } ?? []) + ["-o", transfer.output, transfer.url]
        }
    }

    static let curl = Client(name: "curl", program: .curl) { _, transfer in
        ["curl", "-s", "-S", "-f"] + (transfer.trust.map { ["--cacert", $0] } ?? [])
            + ["-o", transfer.output, transfer.url]
    }

    static func aria2(_ connections: Int) -> Client {
        Client(name: "aria2c -x\(connections)", program: .aria2c) { _, transfer in
            ["aria2c", "-q", "-x\(connections)", "-s\(connections)", "-k1M", "--allow-overwrite=true"]
                + (transfer.trust.map { ["--ca-certificate=\($0)"] } ?? [])
                + ["-d", "/", "-o", transfer.output, transfer.url]
        }
    }

    static func axel(_ connections: Int) -> Client {
        Client(name: "axel -n\(connections)", program: .axel) { _, transfer in
            ["axel", "-q", "-n", "\(connections)"] + (transfer.trust == nil ? [] : ["-k"])
                + ["-o", transfer.output, transfer.url]
        }
    }

    static func wget2(_ threads: Int) -> Client {
        Client(name: "wget2 \(threads)", program: .wget2) { _, transfer in
            ["wget2", "-q", "--max-threads=\(threads)", "--chunk-size=8M"]
                + (transfer.trust.map { ["--ca-certificate=\($0)"] } ?? []) + ["-O", transfer.output, transfer.url]
        }
    }

    /// The floor in C: `recv` of a MiB and `pwrite`, without checks and syncs.
    static func limit(_ connections: Int, length: Int) -> Client {
        Client(name: "limit (C)", program: nil) { lab, transfer in
            let rest = transfer.url.dropFirst("http://127.0.0.1:".count)
            let path = rest.drop { $0 != "/" }
            return [
                lab.tools, "limit", String(rest.prefix { $0 != "/" }), String(path), transfer.output, "\(connections)",
                "\(length)",
            ]
        }
    }

    init(name: String, program: Program?, words: @escaping @Sendable (Lab, Transfer) -> [String]) {
        self.name = name
        self.program = program
        self.words = words
    }

    func isPresent(in lab: Lab) -> Bool {
        guard lab.only.isEmpty || lab.only.contains(where: { self.name.contains($0) }) else { return false }
        guard let program else { return true }
        return program == .segdl || lab.program(program.rawValue) != nil
    }
}
