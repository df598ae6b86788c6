import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// Which files the disk has room for.
@Suite("Space for a part file")
struct PartialFileSpaceTests {
    @Test("A stream of unknown length leaves 64 MiB of the disk free; a file of known length need not")
    func reserve() async throws {
        for (length, free, isKept) in [
            (nil, 64 << 20, true), (nil, 64 << 20 - 1, false), (100, 0, true),
        ] as [(Int64?, Int64, Bool)] {
            try await WatchedPart.run { subject in
                try await subject.part.begin(
                    WatchedPart.resource(length), id: 7, sources: [], digests: [], allocates: true)
                subject.disk.setFreeSpace(free)
                let found = await condition { try subject.part.keepReserve() }
                #expect(found == (isKept ? nil : .noSpace))
            }
        }
    }

    @Test("A file fits if its length is free or reserved by its part; of unknown length it always fits")
    func fits() async throws {
        try await WatchedPart.run { subject in
            let reserved = try subject.part.file.status().allocated
            for (length, free, code) in [
                (100, 100 - reserved, nil), (101, 100 - reserved, .space), (nil, 0, nil), (.max, .max, nil),
            ] as [(Int64?, Int64, DownloadError.Code?)] {
                subject.disk.setFreeSpace(free)
                #expect(await failureCode { try subject.part.checkSpace(for: length) } == code)
            }
        }
    }

    @Test("Space that the part has reserved counts as free")
    func reserved() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(1 << 20)
            let reserved = try subject.part.file.status().allocated
            subject.disk.setFreeSpace(50)
            #expect(await failureCode { try subject.part.checkSpace(for: 50 + reserved) } == nil)
            #expect(await failureCode { try subject.part.checkSpace(for: 51 + reserved) } == .space)
        }
    }
}
