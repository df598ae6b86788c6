import SegmentedDownloadCore

/// Which origins and mirrors a world has.
extension Simulation {
    static func origin(_ number: Int, _ faults: Faults, _ generator: inout SplitMix64) -> SimulatedOrigin {
        // Mostly small, for many worlds; some longer than a block, and some longer than the length that gets its
        // manifest at once.
        let magnitude = [0, 8, 12, 16, 16, 18, 18, 20, 21, 24][Int.random(in: 0..<10, using: &generator)]
        let length = Int.random(in: 0...(1 << magnitude), using: &generator)
        var origin = SimulatedOrigin(SimulatedNetwork.version(1, count: length, using: &generator))
        if faults.contains(.weakIdentity) {
            origin.identity = SimulatedOrigin.Identity.allCases.randomElement(using: &generator) ?? .strong
        }
        // How it says so is not drawn, so that the random numbers are those of earlier versions.
        if faults.contains(.noRanges), Int.random(in: 0..<6, using: &generator) == 0 {
            origin.doesRanges = false
            origin.rangeRefusal = [nil, 403, 404, 405, 400, 416, 501, 500, 502][length % 9]
        }
        if faults.contains(.lies) {
            origin.dislikesIfRange = Int.random(in: 0..<6, using: &generator) == 0
            origin.ifRangeRefusal = [nil, 412, 400, 501][length % 4]
            origin.tellsLength = Int.random(in: 0..<6, using: &generator) != 0
        }
        if faults.contains(.redirects) {
            origin.redirects = Bool.random(using: &generator)
            origin.tokenLifetime = .seconds(Int64.random(in: 1...60, using: &generator))
        }
        return origin
    }

    /// Gives a file a tag that proves less than it seems to.
    static func confuse(_ origin: inout SimulatedOrigin, _ faults: Faults, _ generator: inout SplitMix64) {
        guard faults.contains(.identity) else { return }
        origin.sharesTags = Bool.random(using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: origin.nodes = Int.random(in: 2...3, using: &generator)
        case 1: origin.identity = .malformed
        default: break
        }
    }

    /// Further origins of a file, mostly with the same bytes, under the same tag or another.
    static func others(
        _ origin: SimulatedOrigin, _ faults: Faults, _ generator: inout SplitMix64
    ) -> [SimulatedOrigin] {
        // One offset for all: samples at both ends cannot distinguish two files that differ between two offsets.
        let offset = Int.random(in: 0...origin.current.bytes.count, using: &generator)
        return (1...Int.random(in: 1...2, using: &generator)).map { number in
            var other = origin
            other.redirects = false
            let bytes = origin.current.bytes
            let kind = faults.contains(.differingMirrors) ? Int.random(in: 0..<5, using: &generator) : 0
            // The tag differs or is the same: servers make tags of date and length, independent of the bytes.
            let tag = kind > 0 && Bool.random(using: &generator) ? 10 + number : origin.current.number
            let version: SimulatedOrigin.Version
            // Two mirrors that differ from the origin also differ from each other.
            let change: (UInt8) -> UInt8 = number == 1 ? { ~$0 } : { $0 ^ 0x0F }
            switch kind {
            case 0, 1: version = .init(number: tag, bytes: bytes)
            case 2: version = .init(number: tag, bytes: bytes.map(change))
            case 3: version = .init(number: tag, bytes: bytes[..<offset] + bytes[offset...].map(change))
            default: version = .init(number: tag, bytes: bytes + [0])
            }
            other.versions = [version]
            if faults.contains(.noRanges) { other.doesRanges = Bool.random(using: &generator) }
            return other
        }
    }
}
