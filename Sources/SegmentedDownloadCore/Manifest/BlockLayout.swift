/// How a resource is divided into blocks that are checked one by one.
package enum BlockLayout {
    /// 1 MiB: what a crash may cost a segment, and small enough that one damaged place costs one short request.
    package static let blockLength: Int64 = 1 << 20

    /// The end of the block that holds the byte at `offset`.
    package static func blockEnd(after offset: Int64) -> Int64 {
        let start = offset - offset % Self.blockLength
        let (end, overflow) = start.addingReportingOverflow(Self.blockLength)
        return overflow ? .max : end
    }
}
