import HTTPTypes
import SegmentedDownload
import SegmentedDownloadCore

extension Operation {
    private static let gibibyte: Int64 = 1 << 30
    private static let mebibyte = 1 << 20

    static var all: [Operation] {
        get async throws {
            [
                Self.planning, Self.stealing, Self.verdict, Self.claim, try Self.manifest, Self.tick,
                try await Self.writing(chunk: 64 << 10), try await Self.writing(chunk: 1 << 20),
            ]
        }
    }

    private static let resource = RemoteResource(
        completeLength: Self.gibibyte,
        validator: Validator(entityTag: EntityTag(fieldValue: "\"5f3a-1c2d\""), lastModified: nil))

    private static var planning: Operation {
        Operation(name: "plan of 1 GiB in 16 segments", allocationsMax: 24) { count in
            for _ in 0..<count {
                var plan = SegmentPlan(completeLength: Self.gibibyte)
                SegmentPlanner(splitLengthMinimum: Int64(Self.mebibyte)).divide(&plan, into: 16)
                precondition(plan.segments.count == 16)
            }
        }
    }

    private static var stealing: Operation {
        let splitter = SegmentSplitter(planner: SegmentPlanner(splitLengthMinimum: Int64(Self.mebibyte)))
        let candidates = (0..<16).map { number in
            let start = Int64(number) * (64 << 20)
            return SegmentSplitter.Candidate(
                lease: LeaseID(number), remaining: start..<(start + (1 + Int64(number)) << 20), rate: 1e6)
        }
        return Operation(name: "whose work a free connection takes, of 16", allocationsMax: 14) { count in
            for _ in 0..<count {
                guard case .split = splitter.proposal(among: candidates, requestCost: 0.05) else {
                    preconditionFailure("nothing is taken")
                }
            }
        }
    }

    private static var verdict: Operation {
        let request = RangeRequest(
            lowerBound: 64 << 20, upperBound: 128 << 20, identity: Self.resource, sendsIfRange: true)
        var fields = HTTPFields()
        fields[.date] = "Sun, 22 Nov 2026 03:00:00 GMT"
        fields[.contentType] = "application/octet-stream"
        fields[.contentLength] = "\(64 << 20)"
        fields[.contentRange] = "bytes \(64 << 20)-\((128 << 20) - 1)/\(Self.gibibyte)"
        fields[.eTag] = "\"5f3a-1c2d\""
        fields[.server] = "nginx"
        let head = ResponseHead(status: 206, fields: fields)
        return Operation(name: "verdict on a 206", allocationsMax: 8) { count in
            for _ in 0..<count {
                guard case .partial = RangeResponse(request: request, head: head) else {
                    preconditionFailure("it is refused")
                }
            }
        }
    }

    private static var claim: Operation {
        Operation(name: "claim, as the manifest has it", allocationsMax: 6) { count in
            for number in 0..<count {
                let claim = Claim(offset: Int64(number % 2048) << 19, length: 1 << 19, crc: CRC32())
                let bytes = ManifestCodec.encode(.claim(claim), sequence: UInt32(number & 0xFFFF), of: 7)
                precondition(!bytes.isEmpty)
            }
        }
    }

    private static var manifest: Operation {
        get throws {
            let header = Manifest.Header(
                id: 7, resource: Self.resource, completeLength: Self.gibibyte, device: 1, inode: 2, bootID: "boot",
                sources: ["https://example.org/file"], digests: [])
            var bytes = ManifestCodec.encode(header)
            for number in 0..<2048 {
                let claim = Claim(offset: Int64(number) << 19, length: 1 << 19, crc: CRC32())
                bytes += ManifestCodec.encode(.claim(claim), sequence: UInt32(number), of: 7)
            }
            let whole = bytes
            return Operation(name: "manifest of 1 GiB, read", allocationsMax: 4500) { count in
                for _ in 0..<count {
                    let manifest = try ManifestCodec.decode(whole)
                    precondition(manifest.pending.count == 2048)
                }
            }
        }
    }

    /// A download on 16 connections that all receive bytes, observed ten times a second.
    private static var tick: Operation {
        var settings = DownloadSettings()
        settings.segments = .exactly(16)
        settings.host = "host"
        let id = DownloadID(0)
        var machine = GroupStateMachine(limits: .init())
        var orders: [FetchOrder] = []
        func handle(_ event: GroupEvent) {
            for case .fetch(_, let order) in machine.handle(event, now: .zero) { orders.append(order) }
        }
        func accept(_ order: FetchOrder) {
            let range = order.request.lowerBound..<(order.request.upperBound ?? Self.gibibyte)
            let verdict = RangeResponse.partial(ByteRange(range), Self.resource)
            handle(.download(id, .responded(order.lease, verdict, suggestedName: nil)))
        }
        handle(.added(id, settings, seed: 1))
        handle(.download(id, .surveyed(.nothing)))
        accept(orders[0])
        handle(.download(id, .prepared()))
        for order in orders.dropFirst() { accept(order) }
        precondition(orders.count == 16)
        let (leases, start) = (orders, machine)
        return Operation(name: "tick of 16 connections", allocationsMax: 36) { count in
            var machine = start
            for number in 1...count {
                // 16 KiB each; starts over before the segments are complete.
                if number % 3000 == 0 { machine = start }
                let moment = number % 3000
                let observations = leases.map { order in
                    LeaseObservation(
                        lease: order.lease, position: order.request.lowerBound + Int64(moment) << 14,
                        bytesReceived: Int64(moment) << 14, isWriting: false)
                }
                machine.observe(id, observations, now: .milliseconds(100 * moment))
                for case .download(_, .checkpoint) in machine.handle(.tick, now: .milliseconds(100 * moment)) {
                    _ = machine.handle(.download(id, .checkpointed(bytes: 0)), now: .milliseconds(100 * moment))
                }
                precondition(machine.connections(id) == 16)
            }
        }
    }

    /// The path of received bytes: into a file, its CRC-32, and claims in the manifest.
    private static func writing(chunk: Int) async throws -> Operation {
        let storage = POSIXStorage()
        let paths = DestinationPaths(path: "/tmp/segdl-micro-\(UInt64.random(in: .min ... .max))")
        let file = try storage.open(paths.part, .create)
        let header = Manifest.Header(
            id: 7, resource: Self.resource, completeLength: Self.gibibyte, device: 0, inode: 0, bootID: "", sources: [],
            digests: [])
        let part = PartialFile(paths: paths, file: file, storage: storage, header: header, claims: [])
        try await part.begin(Self.resource, id: 7, sources: [], digests: [], allocates: false)
        // Open files need no names.
        for path in [paths.part, paths.manifest] { try storage.remove(path) }
        let bytes = [UInt8](repeating: 7, count: chunk)
        return Operation(name: "1 MiB written in pieces of \(chunk >> 10) KiB", allocationsMax: 12) { count in
            for number in 0..<count {
                var writer = SegmentWriter(part: part, from: Int64(number % 64) * Int64(Self.mebibyte))
                for _ in 0..<(Self.mebibyte / chunk) { try bytes.withUnsafeBytes { try writer.write($0) } }
                try writer.finish()
            }
        }
    }
}
