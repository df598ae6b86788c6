/// How the bytes of one file are divided among the tasks of a job.
///
/// Every task gets one range. Its bounds are multiples of the alignment, so that two machines never write to the same page,
/// block or stripe of a shared file system.
package struct FileDivision: Hashable, Sendable {
    /// The number of tasks.
    package let count: Int
    /// The length of the file in bytes.
    package let length: Int64
    /// In bytes.
    package let alignment: Int64

    /// Nil unless there is a task, a byte and an alignment, or if the file is longer than ``lengthMax``.
    package init?(count: Int, length: Int64, alignment: Int64) {
        guard (1...Shard.countMax).contains(count), (1...Self.lengthMax).contains(length),
            (1...Self.alignmentMax).contains(alignment)
        else { return nil }
        (self.count, self.length, self.alignment) = (count, length, alignment)
    }

    /// 4 EiB: more than any disk holds, and sums of an offset and a length cannot overflow.
    package static let lengthMax: Int64 = 1 << 62
    /// 1 MiB: the block of a claim, and the usual stripe of Lustre.
    private static let alignmentMin = BlockLayout.blockLength
    /// 64 MiB: more than the largest block of a shared file system (16 MiB in GPFS).
    package static let alignmentMax: Int64 = 64 << 20

    /// The alignment for a file system that prefers writes of `blockLength` bytes (`st_blksize`).
    package static func alignment(blockLength: Int64) -> Int64 {
        let length = min(max(blockLength, 1), Self.alignmentMax)
        return ((length - 1) / Self.alignmentMin + 1) * Self.alignmentMin
    }

    /// Empty if there are more tasks than blocks.
    package func range(of shard: Shard) -> Range<Int64> {
        precondition(shard.count == self.count, "the file is divided among another number of tasks")
        return shard.range(in: self.length, alignedTo: self.alignment)
    }

    /// The tasks that have bytes to fetch, in the order of their ranges. They are the first ones.
    package var shards: [Shard] {
        let blocks = Shard.blockCount(in: self.length, alignedTo: self.alignment)
        return (1...Int(min(Int64(self.count), blocks))).compactMap { Shard(number: $0, of: self.count) }
    }
}

/// Whether the records of tasks prove that their file is complete.
package enum AssemblyVerdict: Hashable, Sendable {
    /// These tasks have no record.
    case waiting(for: [Shard])
    /// The task's bytes are of another version of the file, with this validator.
    case changed(Shard, Validator)
    /// The task's record is not for its range.
    case unsuitable(Shard)
    /// All tasks have fetched their ranges of one version. This is the CRC-32 of the file.
    case complete(CRC32)
}

extension FileDivision {
    /// - Parameters:
    ///   - records: What each task recorded when its range was complete.
    ///   - resource: The file that all tasks must have fetched.
    ///   - hasDigest: Whether the complete file will be compared with a digest. Without one, a validator must prove that
    ///     all ranges are of one version.
    package func verdict(
        on records: [Shard: FinishedRecord], of resource: RemoteResource, hasDigest: Bool
    ) -> AssemblyVerdict {
        let missing = self.shards.filter { records[$0] == nil }
        guard missing.isEmpty else { return .waiting(for: missing) }
        var crc = CRC32()
        for shard in self.shards {
            guard let record = records[shard] else { continue }
            if let objection = self.objection(to: record, of: shard, resource, hasDigest: hasDigest) {
                return objection
            }
            crc.append(record.crc, length: record.length)
        }
        return .complete(crc)
    }

    /// Why a task's record does not count; nil if it does.
    package func objection(
        to record: FinishedRecord, of shard: Shard, _ resource: RemoteResource, hasDigest: Bool
    ) -> AssemblyVerdict? {
        guard record.length == Int64(self.range(of: shard).count) else { return .unsuitable(shard) }
        return self.isSameVersion(record, resource, hasDigest: hasDigest)
            ? nil : .changed(shard, record.resource.validator)
    }

    /// Whether a record is of the version of `resource`.
    func isSameVersion(_ record: FinishedRecord, _ resource: RemoteResource, hasDigest: Bool) -> Bool {
        // Records have no malformed fields.
        return switch resource.validator.compare(with: record.resource.validator) {
        case .same: true
        case .unproven: hasDigest
        case .changed: false
        }
    }
}
