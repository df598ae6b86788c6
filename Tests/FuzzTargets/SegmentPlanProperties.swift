import SegmentedDownloadCore

/// After any operation a plan's segments cover the resource in order and without overlap, and no written byte is lost.
enum SegmentPlanProperties {
    /// 32 operations: the whole plan is checked after each.
    private static let operationsMax = 32
    /// More than the connections that any host gets.
    private static let segmentsMax = 40

    static func check(_ bytes: [UInt8]) throws(Violation) {
        var program = ByteProgram(bytes)
        var plan = Self.plan(&program)
        try Self.check(plan)
        var lease = 0
        for _ in 0..<Self.operationsMax where !program.isAtEnd {
            let before = plan
            let operation = program.byte()
            let id = plan.segments.isEmpty ? Segment.ID(0) : plan.segments[Int(program.byte()) % plan.segments.count].id
            switch operation & 7 {
            case 0: plan.advance(id, to: program.number(upTo: plan.completeLength ?? .max))
            case 1:
                lease += 1
                plan.assign(id, to: operation & 8 == 0 ? LeaseID(lease) : nil)
            case 2 where plan.segments.count < Self.segmentsMax:
                plan.split(id, at: program.number(upTo: plan.completeLength ?? .max))
            case 3: try Self.absorb(id, in: &plan)
            case 4: try Self.divide(&plan, &program)
            case 5: plan.truncate(to: program.number(upTo: plan.frontier))
            case 6 where plan.completeLength == nil && plan.segments.count == 1:
                let written = plan.segments[0].position
                plan.close(at: max(written, program.number(upTo: .max)))
            default: try Self.propose(&plan, &program)
            }
            try Self.check(plan)
            try require(
                operation & 7 == 5 || plan.bytesDone >= before.bytesDone, "\(before) lost bytes and became \(plan)")
        }
    }

    private static func plan(_ program: inout ByteProgram) -> SegmentPlan {
        let kind = program.byte()
        guard kind & 3 != 0 else { return SegmentPlan(completeLength: nil) }
        let length = program.number(upTo: .max)
        guard kind & 3 == 1 else { return SegmentPlan(completeLength: length) }
        var missing: [Range<Int64>] = []
        var offset: Int64 = 0
        for _ in 0..<Int(kind >> 2 & 7) {
            let start = offset + program.number(upTo: length - offset)
            let end = start + program.number(upTo: length - start)
            if start < end { missing.append(start..<end) }
            offset = end
        }
        return SegmentPlan(completeLength: length, missing: missing)
    }

    private static func check(_ plan: SegmentPlan) throws(Violation) {
        var offset: Int64 = 0
        var ids: [Segment.ID] = []
        for segment in plan.segments {
            try require(segment.lowerBound == offset, "a gap or overlap at \(offset) in \(plan)")
            try require(
                segment.lowerBound <= segment.position && segment.position <= segment.upperBound,
                "\(segment) has a position outside of itself"
            )
            try require(!ids.contains(segment.id), "two segments are \(segment.id)")
            ids.append(segment.id)
            offset = segment.upperBound
        }
        try require(offset == plan.completeLength ?? .max, "\(plan) ends at \(offset)")
        try require(plan.bytesDone + plan.bytesMissing == offset, "\(plan) does not add up")
        let missing = plan.missing.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) }
        try require(missing == plan.bytesMissing, "\(plan) misses \(missing)")
        if plan.isComplete {
            try require(plan.bytesDone == plan.completeLength, "\(plan) is reported as complete")
        } else {
            try require(plan.frontier < offset || plan.completeLength == nil, "\(plan) is reported as incomplete")
        }
    }

    private static func absorb(_ id: Segment.ID, in plan: inout SegmentPlan) throws(Violation) {
        let before = plan
        guard let end = plan.absorbSuccessor(of: id) else {
            try require(plan == before, "nothing was absorbed, and \(before) became \(plan)")
            return
        }
        try require(plan[id]?.upperBound == end, "\(id) does not end at \(end)")
        try require(plan.bytesDone == before.bytesDone, "\(before) absorbed written bytes")
    }

    private static func divide(_ plan: inout SegmentPlan, _ program: inout ByteProgram) throws(Violation) {
        let before = plan
        let planner = SegmentPlanner(splitLengthMinimum: 1 + program.number(upTo: 64 << 20))
        let count = Int(program.byte()) % Self.segmentsMax
        planner.divide(&plan, into: count)
        let open = before.missing.count
        try require(
            plan.missing.count <= max(count, open), "\(count) were requested and \(plan.missing.count) returned")
        try require(plan.bytesDone == before.bytesDone, "\(before) was divided and lost bytes")
        // A cut may move by half a block where pieces are large; no piece may be empty.
        for range in plan.missing {
            let isNew = !before.missing.contains(range)
            let least = min(planner.splitLengthMinimum, 3 << 20)
            try require(!isNew || range.upperBound - range.lowerBound >= least, "\(range) is shorter than the minimum")
        }
    }

    private static func propose(_ plan: inout SegmentPlan, _ program: inout ByteProgram) throws(Violation) {
        let splitter = SegmentSplitter(
            planner: SegmentPlanner(splitLengthMinimum: 1 + program.number(upTo: 64 << 20)),
            stealLengthMinimum: 1 + program.number(upTo: 64 << 20))
        var candidates: [SegmentSplitter.Candidate] = []
        for segment in plan.segments.prefix(8) where !segment.isComplete {
            let rate = program.byte()
            // Bytes per second from less than one to an exabyte, or unknown.
            candidates.append(
                SegmentSplitter.Candidate(
                    lease: LeaseID(segment.id.rawValue), remaining: segment.position..<segment.upperBound,
                    rate: rate == 0 ? nil : Double(sign: .plus, exponent: Int(rate & 63) - 3, significand: 1)))
        }
        let cost = Double(program.byte()) / 64
        let takers = 1 + Int(program.byte())
        switch splitter.proposal(among: candidates, requestCost: cost, free: takers) {
        case .split(let lease, at: let offset, into: let pieces):
            let candidate = candidates.first { $0.lease == lease }
            let victim = candidate?.remaining ?? 0..<0
            try require(victim.lowerBound < offset && offset < victim.upperBound, "\(victim) is cut at \(offset)")
            let least =
                candidate?.rate == nil ? splitter.planner.splitLengthMinimum : splitter.stealLengthMinimum
            try require(
                victim.upperBound - offset >= least, "only \(victim.upperBound - offset) are taken, not \(least)")
            if plan.segments.count < Self.segmentsMax {
                let back = plan.split(Segment.ID(lease.rawValue), at: offset)
                try require(back != nil, "\(offset) is not a valid cut")
                let before = plan
                if let rest = back.flatMap({ plan[$0] }) {
                    splitter.planner.cut(rest, of: &plan, into: min(pieces, Self.segmentsMax - plan.segments.count))
                }
                try require(plan.missing.first == before.missing.first, "\(before) lost its first hole")
                try require(plan.bytesMissing == before.bytesMissing, "\(before) was cut and lost bytes")
            }
        case .replace(let lease):
            try require(candidates.contains { $0.lease == lease && $0.rate != nil }, "\(lease) is replaced unknown")
        case nil: break
        }
    }
}
