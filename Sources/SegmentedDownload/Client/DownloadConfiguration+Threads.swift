import CLinux
import NIOCore

extension DownloadConfiguration {
    /// 4: with fewer processors, the first receiving thread, the writing one, the server's side of the kernel and the
    /// rest of the machine have work for all.
    private static let processorsLeast = 4

    /// 8: as many receive 100 Gbit/s over TLS at 1.5 GiB/s each.
    private static let countMax = 8

    /// 1024: more than the processors of any machine. Every thread that writes is prepared at the start.
    package static let receivingThreadsRange = 1...1024

    /// The loops that receive.
    var loopPlan: ReceivingLoops.Plan {
        if let count = self.receivingThreads { return ReceivingLoops.Plan(countMax: count, spreadsAll: true) }
        guard self.eventLoopGroup == nil else { return .single }
        return ReceivingLoops.Plan(countMax: Self.count(processors: Self.processors), spreadsAll: false)
    }

    /// Half of the processors: the others write, compute digests, and receive packets.
    static func count(processors: Int) -> Int {
        processors < Self.processorsLeast ? 1 : min(processors / 2, Self.countMax)
    }

    /// The number of processors that this process may use.
    private static var processors: Int {
        let allowed = Int(segdl_processor_count())
        // NIO's number considers a container's quota too. It reads files, which a small machine can do without.
        return allowed < Self.processorsLeast ? allowed : min(allowed, System.coreCount)
    }
}
