import SegmentedDownload
import SegmentedDownloadCore

/// Worlds in which the bytes of files are not all that is stated about them: see ``Faults/statements``.
extension Simulation {
    /// Makes origins state digests and serve variants, and requests parts of files.
    static func makeState(
        _ network: SimulatedNetwork, _ faults: Faults, _ generator: inout SplitMix64
    ) {
        guard faults.contains(.statements) else { return }
        for file in network.origins.indices where network.others.isEmpty {
            let origin = network.origins[file]
            network.origins[file].redirectsHome = Bool.random(using: &generator)
            if origin.identity == .strong, origin.nodes == 1, Int.random(in: 0..<4, using: &generator) == 0 {
                network.origins[file].identity = .sharedTag
            }
            if Bool.random(using: &generator) {
                var digests = SimulatedOrigin.Digests()
                func draw() -> Int { [0, 200, 600, 1000].randomElement(using: &generator) ?? 0 }
                (digests.whole, digests.content, digests.trailing) = (draw(), draw(), draw())
                digests.wrong = [0, 0, 100, 500].randomElement(using: &generator) ?? 0
                digests.damaged = [0, 50, 300].randomElement(using: &generator) ?? 0
                network.origins[file].digests = digests
            }
            // A redirect takes no fields along.
            if !origin.redirects, !network.twins.contains(file), Int.random(in: 0..<3, using: &generator) == 0 {
                network.origins[file].hasVariants = true
                network.twins.insert(file)
            }
            let count = Int64(origin.current.bytes.count)
            // So long that no version ends before the part begins.
            if origin.doesRanges, count >= 64, Int.random(in: 0..<4, using: &generator) == 0 {
                let first = Int64.random(in: 0...(count / 2), using: &generator)
                let last = Int64.random(in: first...(count + 10), using: &generator)
                network.parts[file] = .init(first: first, last: Bool.random(using: &generator) ? nil : last)
            }
        }
    }

    /// At times has the next run send the field that selects the variant, or leave it out.
    mutating func redrawVariants() {
        for file in self.network.origins.indices where self.network.origins[file].hasVariants {
            let isVariant = Bool.random(using: &self.statementsGenerator)
            self.requests[file].fields[SimulatedOrigin.variantField] = isVariant ? "1" : nil
            self.checker.expectsTwin[file] = isVariant
        }
    }

    /// Draws what the user of the next run states. In a calm run it is true.
    mutating func redrawDemands(isCalm: Bool) {
        var demands: [Int: StatementLedger.Demand] = [:]
        for file in self.requests.indices where self.faults.contains(.statements) {
            var demand = StatementLedger.Demand()
            let bytes = self.checker.current(file)
            func draw() -> Int { Int.random(in: 0..<6, using: &self.statementsGenerator) }
            if self.hasDemanded.contains(file) && isCalm || draw() == 0 {
                let isTrue = isCalm || draw() > 1
                demand.digest = SimulatedNetwork.digest(of: isTrue ? bytes : bytes + [0])
                self.hasDemanded.insert(file)
            } else if draw() == 0, !isCalm {
                let length = Int.random(in: 1...(1 << 18), using: &self.statementsGenerator)
                let isTrue = draw() > 0
                let hexes = stride(from: 0, to: max(bytes.count, 1), by: length).map { start in
                    SimulatedNetwork.digest(of: Array(bytes.dropFirst(start).prefix(length)) + (isTrue ? [] : [0])).hex
                }
                demand.pieces = PieceDigests(length: Int64(length), algorithm: .sha256, hexes: hexes)
                // They stay in the manifest. A digest of the whole file overrules them.
                self.hasDemanded.insert(file)
            }
            if draw() == 0, !isCalm, self.network.parts[file] == nil {
                demand.length = Int64(bytes.count + (draw() == 0 ? 1 : 0))
            }
            // Pieces are not verified for parts of files.
            if self.network.parts[file] != nil { demand.pieces = nil }
            self.requests[file].digests = demand.digest.map { [$0] } ?? []
            self.requests[file].pieceDigests = demand.pieces
            self.requests[file].lengthExpected = demand.length
            demands[file] = demand
        }
        self.checker.ledger.begin(demands)
    }

    /// Has another program change files between two runs.
    mutating func haveFilesEdited() {
        guard self.faults.contains(.statements) else { return }
        for file in self.requests.indices where Int.random(in: 0..<8, using: &self.statementsGenerator) == 0 {
            let keepsTime = Bool.random(using: &self.statementsGenerator)
            self.checker.ledger.edit(file, keepsTime: keepsTime, using: &self.statementsGenerator)
        }
    }
}
