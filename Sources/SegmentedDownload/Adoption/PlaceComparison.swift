import SegmentedDownloadCore

/// Compares places in a file on disk with the server's file, over several connections.
struct PlaceComparison: Sendable {
    let client: DownloadClient
    let request: DownloadRequest
    let follower: RedirectFollower
    /// The identity that every response must match.
    let resource: RemoteResource
    let file: any StorageFile

    /// 8: enough that round trips overlap, and few enough for any server.
    private static let connectionsMax = 8
    /// 8: how often a response with another validator is answered by another request. See `Disagreement` in the core.
    private static let attemptsForNode = 8

    /// Compares all places.
    ///
    /// - Throws: ``DownloadError`` if the server cannot be asked.
    func compare(_ places: [Range<Int64>]) async throws -> [AdoptionVerdict.Place] {
        let count = min(self.connections, places.count)
        let agreeing = try await withThrowingTaskGroup(of: [Int].self) { group in
            for connection in 0..<count {
                group.addTask {
                    var generator = SplitMix64(seed: UInt64(connection))
                    var agreeing: [Int] = []
                    for index in stride(from: connection, to: places.count, by: count)
                    where try await self.agrees(places[index], using: &generator) {
                        agreeing.append(index)
                    }
                    return agreeing
                }
            }
            return try await group.reduce(into: Set<Int>()) { $0.formUnion($1) }
        }
        return places.indices.map { AdoptionVerdict.Place(places[$0], agrees: agreeing.contains($0)) }
    }

    private var connections: Int {
        let limits = self.client.configuration.limits
        return max(min(Self.connectionsMax, limits.connections, limits.connectionsPerHost), 1)
    }

    /// Compares a place, and asks again after a failure that may pass.
    private func agrees(_ place: Range<Int64>, using generator: inout SplitMix64) async throws -> Bool {
        let policy = DownloadSettings(self.request.options).retry
        var failures = 0
        while true {
            do {
                return try await self.agrees(place)
            } catch let failure as DownloadError {
                // The nodes of a server farm may send different validators.
                let delay: Duration
                let request = FailedRequest(.bytes, failure, failures: failures)
                failures += 1
                if failure.code == .changed, failures <= Self.attemptsForNode {
                    delay = policy.delayBase
                } else {
                    guard case .again(let after, _) = policy.decision(on: request, using: &generator) else {
                        throw failure
                    }
                    delay = after
                }
                try await self.client.clock.sleep(until: self.client.clock.now + delay)
            }
        }
    }

    private func agrees(_ place: Range<Int64>) async throws -> Bool {
        var offset = place.lowerBound
        // A server may send less than was requested.
        while offset < place.upperBound {
            let range = RangeRequest(
                lowerBound: offset, upperBound: place.upperBound, identity: self.resource)
            let start = offset
            let patience = self.request.options.headPatience(isOnly: true)
            let bytes = try await self.client.within(patience, of: self.request.source.host) {
                try await self.follower.withResponse(to: range) { _, response, _, body in
                    try await self.bytes(of: body, response, from: start)
                }
            }
            guard try self.isOnDisk(bytes, at: offset) else { return false }
            offset += Int64(bytes.count)
        }
        return true
    }

    private func bytes(
        of body: any ResponseBody, _ response: RangeResponse, from offset: Int64
    ) async throws -> [UInt8] {
        guard case .partial(let range, _) = response else { throw self.failure(of: response) }
        var bytes: [UInt8] = []
        while let chunk = try await body.next() { chunk.withBytes { bytes.append(contentsOf: $0) } }
        guard !bytes.isEmpty, Int64(bytes.count) == range.upperBound - offset else {
            throw DownloadError(.network, "\(self.request.source.host): the response ended early", isTransient: true)
        }
        return bytes
    }

    private func failure(of response: RangeResponse) -> DownloadError {
        let host = self.request.source.host
        switch response {
        case .changed(let difference):
            return DownloadError(.changed, "the remote file changed while it was being compared: \(difference)")
        case .moved(let difference):
            return DownloadError(
                .changed, "\(host) leads to another file than before\(difference.map { ": \($0)" } ?? "")")
        case .whole, .ignoresRanges:
            return DownloadError(.protocol, "\(host) does not answer every request for a range with one")
        case .partial, .notModified, .unsatisfiable, .redirected, .refused, .unauthorized, .rejected, .malformed:
            return response.failure(host: host)
        }
    }

    private func isOnDisk(_ bytes: [UInt8], at offset: Int64) throws -> Bool {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        defer { buffer.deallocate() }
        guard try self.file.readFully(into: buffer, at: offset) == bytes.count else { return false }
        return buffer.elementsEqual(bytes)
    }
}
