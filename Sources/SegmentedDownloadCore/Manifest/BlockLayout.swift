/// The division of a resource into blocks. A claim lies within one block, and each block is checked on its own.
package enum BlockLayout {
    /// 1 MiB: large enough for few claims, small enough that damage in one place costs one short request.
    package static let blockLength: Int64 = 1 << 20

    /// The end of the block that holds the byte at `offset`.
    package static func blockEnd(after offset: Int64) -> Int64 {
        let start = offset - offset % Self.blockLength
        let (end, overflow) = start.addingReportingOverflow(Self.blockLength)
        return overflow ? .max : end
    }
}
