import Foundation
import HTTPTypes
package import SegmentedDownload
package import SegmentedDownloadCore

/// Connections that take time, break and stall, to origins that may send wrong answers.
package final class SimulatedNetwork: HTTPTransport, @unchecked Sendable {
    // Unchecked: the whole simulation runs on one thread.
    package var origins: [SimulatedOrigin]
    /// Further origins of each file, reached as `http://other0/file0` and so on; not all have the same file.
    package var others: [[SimulatedOrigin]] = []
    /// The versions of each file's twin, made once.
    private var twinVersions: [Int: [SimulatedOrigin.Version]] = [:]
    /// The files whose twin is requested at times, under a URL of its own and for the same destination.
    package var twins: Set<Int> = []
    package var faults: Faults = []
    /// Failing decisions per thousand.
    package var faultiness = 0
    /// Requests an origin serves at once; it refuses more with 429.
    package var served = Int.max
    /// Bytes per second of one connection, and of all together.
    package var rate = 1 << 20
    package var totalRate = 1 << 22
    package var latency = Duration.milliseconds(20)
    package var chunkMax = 64 << 10
    /// What overwrote each file in place, by the number of the version that was overwritten.
    private var overwrites: [Int: [Int: SimulatedOrigin.Version]] = [:]
    /// When the latest head with a file was sent.
    private var headAt: [Int: Duration] = [:]
    private var generator: SplitMix64
    let clock: SimulatedClock
    /// When the shared link is free again.
    private var linkFreeAt: Duration = .zero
    private var epoch = 0
    /// A generator of its own, so that its decisions change nothing else in a world.
    private var statementsGenerator: SplitMix64
    /// SHA-256 by file, version and whether it is the twin's.
    private var digestsKnown: [[Int]: ExpectedDigest] = [:]
    /// The files of which only a part is requested.
    package var parts: [Int: DownloadOptions.Part] = [:]
    /// The files of which a body was damaged.
    package private(set) var damaged: Set<Int> = []
    /// Called with a file's number and the digests that a response with bytes of it states for the whole file.
    package var onStatement: (Int, [ExpectedDigest]) -> Void = { _, _ in }

    package private(set) var connections = 0
    package private(set) var connectionsPeak = 0
    package private(set) var connectionsByFile: [Int: Int] = [:]
    /// By file, and the number of its other origin or -1.
    private var connectionsBySource: [[Int]: Int] = [:]
    package private(set) var chunksOut = 0
    package private(set) var chunksPeak = 0
    private var receiveLimits = SharedReceiveLimits()
    private var limitNumber = 0
    /// Bytes held in pieces that arrived since the last change of limits.
    package private(set) var bytesHeld = 0
    package private(set) var requests = 0
    package private(set) var bytesDelivered = 0
    package private(set) var trace: UInt64 = 1
    /// Called with each request and its answer, for a replay's log.
    package var log: ((String) -> Void)?
    /// Called with the file's number when a connection opens.
    package var onOpen: (Int) -> Void = { _ in }
    /// Called with the bytes of a file that have arrived.
    package var onDelivery: (Range<Int>) -> Void = { _ in }

    package init(seed: UInt64, clock: SimulatedClock, origins: [SimulatedOrigin]) {
        self.generator = SplitMix64(seed: seed)
        self.statementsGenerator = SplitMix64(seed: seed ^ 0x7374_6174_6564)
        self.clock = clock
        self.origins = origins
    }

    /// Closes all connections, because the process or the machine ended.
    package func hangUp() {
        self.epoch += 1
        self.linkFreeAt = .zero
        self.receiveLimits = SharedReceiveLimits()
    }

    package func limit(_ limits: ReceiveLimits?, for owner: ObjectIdentifier) {
        self.receiveLimits.update(limits, for: owner)
        self.limitNumber += 1
        self.bytesHeld = 0
    }

    private func chance(_ fault: Faults, perMille: Int) -> Bool {
        self.faults.contains(fault) && Int.random(in: 0..<1000, using: &self.generator) < perMille * self.faultiness
    }

    package func withResponse<Answer: Sendable>(
        to request: TransportRequest, _ consume: (ResponseHead, any ResponseBody) async throws -> Answer
    ) async throws -> Answer {
        let file = Int(request.url.path.dropFirst("/file".count).prefix { $0 != "/" }) ?? 0
        let epoch = self.epoch
        self.connections += 1
        self.connectionsPeak = max(self.connectionsPeak, self.connections)
        self.connectionsByFile[file, default: 0] += 1
        let source = [file, self.other(request) ?? -1]
        self.connectionsBySource[source, default: 0] += 1
        self.requests += 1
        self.onOpen(file)
        defer {
            self.connections -= 1
            self.connectionsByFile[file, default: 0] -= 1
            self.connectionsBySource[source, default: 0] -= 1
        }
        for part in [request.url.string, request.fields[.range] ?? "", request.fields[.ifRange] ?? ""] {
            for byte in part.utf8 { self.trace = (self.trace ^ UInt64(byte)) &* 0x100_0000_01B3 }
        }
        try await self.pass(self.latency)
        if self.chance(.refusal, perMille: 10) {
            throw DownloadError(.network, "origin port 80: connection refused", isTransient: true)
        }
        try await self.pass(self.latency)
        if self.chance(.blackHole, perMille: 5) { try await self.pass(.seconds(1_000_000)) }
        if self.isSilentlyRefused(source) { try await self.pass(.seconds(1_000_000)) }
        let answer = self.answer(request, file)
        self.log?(
            "\(self.clock.now) \(request.url) \(request.fields[.range] ?? "whole"): \(answer.head.status) "
                + "\(answer.head.fields[.contentRange] ?? "") of version \(answer.version.number), "
                + "length \(answer.head.fields[.contentLength] ?? "none"), body \(answer.body)")
        if !answer.body.isEmpty { self.headAt[file] = self.clock.now }
        let isOwn = ["origin", "mirror0"].contains(request.url.host) && !request.url.path.hasSuffix("/twin")
        let body = Body(
            network: self, epoch: epoch, file: isOwn ? file : nil, answer: answer, rate: self.connectionRate(),
            faultAt: self.breakingPoint(answer)
        ) { [unowned self] digests in self.onStatement(file, digests) }
        return try await consume(answer.head, body)
    }

    private func isAdditional(_ source: [Int]) -> Bool { self.connectionsBySource[source, default: 0] > 1 }

    /// Whether an additional request for a file is one too many and is not answered at all. Not drawn, so that the random numbers are
    /// those of earlier versions.
    private func isSilentlyRefused(_ source: [Int]) -> Bool {
        self.connections > self.served && self.isAdditional(source) && self.served % 5 == 4
    }

    private func pass(_ time: Duration) async throws {
        try await self.clock.sleep(until: self.clock.now + time)
    }

    // MARK: Heads

    /// The number of the other origin that a request is made to; nil if it is made to the file's own.
    private func other(_ request: TransportRequest) -> Int? { Int(request.url.host.dropFirst("other".count)) }

    private func answer(_ request: TransportRequest, _ file: Int) -> SimulatedOrigin.Answer {
        if self.chance(.change, perMille: 2) { self.change(file) }
        let other = self.other(request)
        let origin = other.map { self.others[file][$0] } ?? self.origins[file]
        let none = SimulatedOrigin.Answer(head: ResponseHead(status: 500), version: origin.current, body: 0..<0)
        if self.connections > self.served {
            // Which status does not depend on the random numbers, whose sequence is that of earlier versions.
            let isAdditional = self.isAdditional([file, other ?? -1])
            return self.refusal(isAdditional ? Self.crowdStatuses[self.served % Self.crowdStatuses.count] : 429, none)
        }
        if self.chance(.errors, perMille: 10) {
            return self.refusal([429, 500, 502, 503, 504].randomElement(using: &self.generator) ?? 503, none)
        }
        if origin.redirects, !request.url.path.contains("/signed"), !request.url.path.hasSuffix("/twin") {
            let expiry = (self.clock.now + origin.tokenLifetime).components.seconds
            // Differing mirrors: an odd one serves the version before.
            let mirror =
                self.faults.contains(.differingMirrors) ? Int.random(in: 0...3, using: &self.generator) / 3 : 0
            let token = origin.hasQueryToken ? "?token=\(expiry)" : "/\(expiry)"
            let target =
                origin.redirectsHome
                ? "http://origin/file\(file)/build\(origin.current.number)/signed\(token)"
                : "http://mirror\(mirror)/file\(file)/signed\(token)"
            var answer = none
            answer.head = ResponseHead(status: 302, fields: [.location: target])
            return answer
        }
        var version = origin.current
        if let later = origin.versionLater, self.clock.now >= later.since { version = later.version }
        let isVariant = origin.hasVariants && request.fields[SimulatedOrigin.variantField] != nil
        let isTwin = request.url.path.hasSuffix("/twin") || isVariant
        if isTwin { version = origin.twin(of: version) }
        if request.url.path.contains("/signed") {
            let expiry = request.url.string.split { "/=".contains($0) }.last.flatMap { Int64($0) } ?? 0
            if self.clock.now > .seconds(expiry) {
                return .init(head: ResponseHead(status: origin.expiredStatus), version: version, body: 0..<0)
            }
            if request.url.host == "mirror1", origin.versions.count > 1 {
                let before = origin.versions[origin.versions.count - 2]
                version = .init(number: origin.sharesTags ? version.number : before.number, bytes: before.bytes)
            }
        }
        let node = origin.nodes > 1 ? Int.random(in: 0..<origin.nodes, using: &self.generator) : 0
        var answer = origin.answer(request, version, node: node)
        if self.chance(.noRanges, perMille: 20) {
            var stubborn = origin
            stubborn.doesRanges = false
            answer = stubborn.answer(request, version, node: node)
        }
        if self.chance(.lies, perMille: 20),
            let lie = SimulatedOrigin.Lie.allCases.randomElement(using: &self.generator),
            // The first byte of a part may be one of a file that is coded.
            lie != .coded || self.parts[file] == nil
        {
            answer = origin.distort(answer, lie, using: &self.generator)
        }
        if let digests = origin.digests {
            self.state(digests, of: version, isTwin: isTwin, file, isPart: self.parts[file] != nil, in: &answer)
        }
        return answer
    }

    /// Has an answer state digests, of which some are wrong, and damages some of the bodies with a digest.
    private func state(
        _ digests: SimulatedOrigin.Digests, of version: SimulatedOrigin.Version, isTwin: Bool, _ file: Int,
        isPart: Bool,
        in answer: inout SimulatedOrigin.Answer
    ) {
        guard [200, 206, 304].contains(answer.head.status) else { return }
        func draws(_ perMille: Int) -> Bool { Int.random(in: 0..<1000, using: &self.statementsGenerator) < perMille }
        func whole() -> (ExpectedDigest, isWrong: Bool) {
            guard !draws(digests.wrong) else { return (Self.digest(of: [UInt8(version.number & 0xFF), 0]), true) }
            let key = [file, version.number, isTwin ? 1 : 0, version.bytes.count]
            let digest = self.digestsKnown[key] ?? Self.digest(of: version.bytes)
            self.digestsKnown[key] = digest
            return (digest, false)
        }
        var fields = answer.head.fields
        var provesBody = false
        if draws(digests.whole) {
            let (digest, isWrong) = whole()
            fields[Self.reprDigest] = Self.field(digest)
            answer.stated = [digest]
            provesBody = !isWrong && !isPart
            if answer.head.status == 304 { self.onStatement(file, [digest]) }
        }
        if answer.head.status == 304 || answer.body.isEmpty {
            answer.head = ResponseHead(status: answer.head.status, fields: fields)
            return
        }
        if draws(digests.content) {
            fields[Self.contentDigest] = Self.field(Self.digest(of: Array(answer.version.bytes[answer.body])))
            provesBody = true
        } else if draws(digests.trailing), answer.head.status == 206, answer.body.count < version.bytes.count {
            fields[.trailer] = "Repr-Digest"
            answer.statedAfterwards = [whole().0]
        }
        answer.head = ResponseHead(status: answer.head.status, fields: fields)
        if provesBody, draws(digests.damaged) {
            self.damaged.insert(file)
            var bytes = answer.version.bytes
            bytes[Int.random(in: answer.body, using: &self.statementsGenerator)] ^= 0x10
            answer.version = .init(number: answer.version.number, bytes: bytes)
        }
    }

    private static let reprDigest = HTTPField.Name("Repr-Digest")!
    private static let contentDigest = HTTPField.Name("Content-Digest")!

    package static func digest(of bytes: [UInt8]) -> ExpectedDigest {
        var running = RunningDigest(.sha256)
        bytes.withUnsafeBytes { running.update($0) }
        return ExpectedDigest(.sha256, hex: running.hex)!
    }

    private static func field(_ digest: ExpectedDigest) -> String {
        var bytes: [UInt8] = []
        var digits = digest.hex[...]
        while !digits.isEmpty {
            bytes.append(UInt8(digits.prefix(2), radix: 16) ?? 0)
            digits = digits.dropFirst(2)
        }
        return "sha-256=:\(Data(bytes).base64EncodedString()):"
    }

    /// The answers to an additional request for a file, depending on the number of connections served. Such an answer fails no
    /// file, so ``crowdStatus`` must not be reported; the others may have another cause.
    private static let crowdStatuses = [429, crowdStatus, 503, 403, crowdStatus, 401, 509]

    /// 410: no other answer of the simulated origins has it.
    static let crowdStatus = 410

    private func refusal(_ status: Int, _ answer: SimulatedOrigin.Answer) -> SimulatedOrigin.Answer {
        var fields = HTTPFields()
        if Bool.random(using: &self.generator) {
            fields[.retryAfter] = "\(Int.random(in: 0...8, using: &self.generator))"
        }
        var answer = answer
        answer.head = ResponseHead(status: status, fields: fields)
        return answer
    }

    /// Every version of a file on any of its origins, past and present, and of its twin.
    package func versions(of file: Int) -> [SimulatedOrigin.Version] {
        self.versions(of: file, isTwin: false)
            + (self.twins.contains(file) ? self.versions(of: file, isTwin: true) : [])
    }

    /// Every version of a URL, past and present.
    package func versions(of file: Int, isTwin: Bool) -> [SimulatedOrigin.Version] {
        if isTwin {
            let originals = self.origins[file].versions
            let known = self.twinVersions[file, default: []]
            let all = known + originals[known.count...].map { self.origins[file].twin(of: $0) }
            self.twinVersions[file] = all
            return all
        }
        return self.origins[file].versions + (self.others.isEmpty ? [] : self.others[file].flatMap(\.versions))
    }

    /// Replaces the file by one of the same length that differs in every byte. Without a validator only the bytes show
    /// the change.
    package func replaceSilently(_ file: Int) {
        guard self.origins[file].identity == .none, self.origins[file].versions.count < 4, self.others.isEmpty else {
            return
        }
        let old = self.origins[file].current
        self.origins[file].versions.append(.init(number: old.number + 1, bytes: old.bytes.map { ~$0 }))
    }

    /// Replaces the file by another version of the same or nearly the same length, which is the hardest to detect.
    package func change(_ file: Int) {
        // Without a validator a change cannot be detected.
        guard [.strong, .weak, .malformed, .sharedTag].contains(self.origins[file].identity),
            self.origins[file].versions.count < 4
        else {
            return
        }
        let old = self.origins[file].current
        if self.mayChangeSlightly(file) {
            let start = Int.random(in: old.bytes.indices, using: &self.statementsGenerator)
            let end = min(start + 1 + old.bytes.count / 8, old.bytes.count)
            let bytes = old.bytes[..<start] + old.bytes[start..<end].map { ~$0 } + old.bytes[end...]
            self.origins[file].versions.append(.init(number: old.number + 1, bytes: Array(bytes)))
            return
        }
        let delta = [0, 0, 1, -1, 4096].randomElement(using: &self.generator) ?? 0
        let count = max(old.bytes.count + delta, 0)
        self.origins[file].versions.append(Self.version(old.number + 1, count: count, using: &self.generator))
    }

    /// Whether the next version differs in few bytes, which samples do not find: where validators must show the change.
    private func mayChangeSlightly(_ file: Int) -> Bool {
        let origin = self.origins[file]
        guard self.faults.contains(.statements), self.others.isEmpty, !origin.current.bytes.isEmpty,
            origin.identity != .sharedTag, origin.redirectsHome || !origin.redirects
        else { return false }
        return Bool.random(using: &self.statementsGenerator)
    }

    package func isOverwritten(_ file: Int) -> Bool { self.overwrites[file] != nil }

    /// At times overwrites a file in place, with bytes of the same length. A server has read what arrives within about a
    /// second of a head, so only later bytes are new.
    ///
    /// Only files with a strong tag are overwritten: their result says whether something proves them.
    private func overwriteAtTimes(_ file: Int) {
        guard self.chance(.overwriting, perMille: 5), self.origins[file].versions.count < 4, self.twins.isEmpty,
            self.origins[file].identity == .strong,
            self.clock.now - self.headAt[file, default: .zero] > .milliseconds(1250)
        else { return }
        let old = self.origins[file].current
        let new = Self.version(old.number + 1, count: old.bytes.count, using: &self.generator)
        self.origins[file].versions.append(new)
        self.overwrites[file, default: [:]][old.number] = new
        self.log?("\(self.clock.now) file \(file) is overwritten by version \(new.number)")
    }

    package static func version(
        _ number: Int, count: Int, using generator: inout SplitMix64
    ) -> SimulatedOrigin.Version {
        var bytes = [UInt8](repeating: 0, count: (count + 7) / 8 * 8)
        bytes.withUnsafeMutableBytes { buffer in
            let words = buffer.bindMemory(to: UInt64.self)
            for index in words.indices { words[index] = generator.next() }
        }
        bytes.removeLast(bytes.count - count)
        return .init(number: number, bytes: bytes)
    }

    // MARK: Bodies

    enum Break { case reset, stall, truncation }

    private func breakingPoint(_ answer: SimulatedOrigin.Answer) -> (offset: Int, what: Break)? {
        let what: Break
        if self.chance(.reset, perMille: 15) {
            what = .reset
        } else if self.chance(.stall, perMille: 10) {
            what = .stall
        } else if self.chance(.truncation, perMille: 15), answer.isFramed {
            what = .truncation
        } else {
            return nil
        }
        return (Int.random(in: 0...answer.body.count, using: &self.generator), what)
    }

    private func connectionRate() -> Int {
        guard self.faults.contains(.unevenRates) else { return self.rate }
        return max(self.rate >> Int.random(in: 0...7, using: &self.generator), 1024)
    }

    /// A body read piece by piece; each piece takes its time on its connection and on the shared link.
    private final class Body: ResponseBody, @unchecked Sendable {
        private let network: SimulatedNetwork
        private let epoch: Int
        /// The file whose bytes it sends; nil for another origin's or the twin.
        private let file: Int?
        private var version: SimulatedOrigin.Version
        private var rest: Range<Int>
        private let rate: Int
        private var left: Int?
        private let what: Break
        private var stated: [ExpectedDigest]
        private let statedAfterwards: [ExpectedDigest]
        private let note: ([ExpectedDigest]) -> Void

        init(
            network: SimulatedNetwork, epoch: Int, file: Int?, answer: SimulatedOrigin.Answer, rate: Int,
            faultAt: (offset: Int, what: Break)?, note: @escaping ([ExpectedDigest]) -> Void
        ) {
            self.stated = answer.stated
            self.statedAfterwards = answer.statedAfterwards
            self.note = note
            self.network = network
            self.epoch = epoch
            self.file = file
            self.version = answer.version
            self.rest = answer.body
            self.rate = rate
            self.left = faultAt?.offset
            self.what = faultAt?.what ?? .reset
        }

        func next() async throws -> (any BodyChunk)? {
            try Task.checkCancellation()
            guard self.epoch == self.network.epoch else { throw CancellationError() }
            if self.left == 0 { try await self.breakOff() }
            guard !self.rest.isEmpty else { return nil }
            if let file {
                self.network.overwriteAtTimes(file)
                while let new = self.network.overwrites[file]?[self.version.number] { self.version = new }
            }
            var count = min(self.rest.count, Int.random(in: 1...self.network.chunkMax, using: &self.network.generator))
            if let left { count = min(count, left) }
            let start = max(self.network.clock.now, self.network.linkFreeAt)
            let shared = Duration.microseconds(count * 1_000_000 / self.network.totalRate)
            self.network.linkFreeAt = start + shared
            let own = Duration.microseconds(count * 1_000_000 / self.rate)
            try await self.network.clock.sleep(until: max(start + shared, self.network.clock.now + own))
            guard self.epoch == self.network.epoch else { throw CancellationError() }
            // As on a socket, a read returns no more than the memory limit allows. A connection holds one piece here.
            count = min(count, self.network.receiveLimits.strictest.memory ?? .max)
            let range = self.rest.prefix(count)
            self.rest = range.upperBound..<self.rest.upperBound
            if let left { self.left = left - count }
            self.network.bytesDelivered += count
            self.network.onDelivery(range)
            if !self.stated.isEmpty { self.note(self.stated) }
            self.stated = []
            return Chunk(network: self.network, bytes: self.version.bytes[range])
        }

        var trailers: HTTPFields {
            guard self.rest.isEmpty, let digest = self.statedAfterwards.first else { return [:] }
            self.note([digest])
            return [SimulatedNetwork.reprDigest: SimulatedNetwork.field(digest)]
        }

        private func breakOff() async throws {
            switch self.what {
            case .stall: try await self.network.pass(.seconds(1_000_000))
            case .reset:
                throw DownloadError(.network, "origin: the connection broke (connection reset)", isTransient: true)
            case .truncation:
                throw DownloadError(
                    .network, "origin closed the connection before the response was complete", isTransient: true)
            }
        }
    }

    /// A piece that reports its release, so that the pieces held at once can be counted.
    private final class Chunk: BodyChunk {
        private let network: SimulatedNetwork
        private let limitNumber: Int
        private let bytes: ArraySlice<UInt8>

        init(network: SimulatedNetwork, bytes: ArraySlice<UInt8>) {
            self.network = network
            self.limitNumber = network.limitNumber
            self.bytes = bytes
            network.bytesHeld += bytes.count
            network.chunksOut += 1
            network.chunksPeak = max(network.chunksPeak, network.chunksOut)
        }

        deinit {
            self.network.chunksOut -= 1
            if self.limitNumber == self.network.limitNumber { self.network.bytesHeld -= self.bytes.count }
        }

        var count: Int { self.bytes.count }

        func withBytes<Answer>(_ body: (UnsafeRawBufferPointer) throws -> Answer) rethrows -> Answer {
            try self.bytes.withUnsafeBytes(body)
        }
    }
}
