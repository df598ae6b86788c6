import Foundation
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// What is known of a finished file at a destination.
@Suite("Surveying a finished file")
struct SurveyedFileTests {
    /// A finished file of ten bytes, with a record if it is to have one.
    ///
    /// - Parameter isProved: Whether record and times prove that the file was not changed.
    private static func finished(
        _ subject: WatchedPart, crc: CRC32? = nil, length: Int64 = 10, isSynced: Bool = true, isProved: Bool = false
    ) throws {
        let file = try subject.disk.open(subject.paths.destination, .create)
        defer { file.close() }
        try file.writeFully(WatchedPart.bytes(0..<10), at: 0)
        guard let crc else { return }
        try file.setModified(1_000_000_000)
        var record = FinishedRecord(
            resource: WatchedPart.resource(length), length: length, crc: crc, modified: try file.status().modified)
        record.isSynced = isSynced
        repeat {
            // The attribute is a change of its own, and counts if it is made within 10 ms.
            if isProved { record.changed = try file.status().changed }
            #expect(try file.setAttribute(FinishedRecord.attribute, record.encoded))
        } while try isProved && !record.proves(file.status())
    }

    /// What is found at the destination.
    private static func existing(
        _ subject: WatchedPart, _ policy: DownloadOptions.ExistingFilePolicy = .verify, digests: [ExpectedDigest] = []
    ) throws -> ExistingFile? {
        guard case .existing(let file) = try subject.survey(policy, digests: digests).survey else { return nil }
        return file
    }

    private static let crc = CRC32(of: WatchedPart.bytes(0..<10))

    @Test("A finished file is known by its record while it has that length, and times that prove it or that content")
    func record() async throws {
        for (crc, length, isProved, isTouched, isKnown) in [
            (Self.crc, 10, true, false, true), (Self.crc, 10, true, true, true), (CRC32(), 10, true, false, true),
            (CRC32(), 10, true, true, false), (Self.crc, 10, false, false, true), (CRC32(), 10, false, false, false),
            (Self.crc, 11, false, false, false),
        ] as [(CRC32, Int64, Bool, Bool, Bool)] {
            try await WatchedPart.run { subject in
                try Self.finished(subject, crc: crc, length: length, isProved: isProved)
                if isTouched {
                    try FileManager.default.setAttributes(
                        [.modificationDate: Date(timeIntervalSince1970: 1000)], ofItemAtPath: subject.paths.destination)
                }
                let file = try #require(try Self.existing(subject))
                #expect(file.length == 10 && file.isIdentified == nil && (file.record != nil) == isKnown)
            }
        }
        try await WatchedPart.run { subject in
            try Self.finished(subject)
            let file = try #require(try Self.existing(subject))
            #expect(file.length == 10 && file.record == nil && file.isIdentified == nil && file.modified != nil)
        }
    }

    @Test("If nothing is compared with the record it counts if length and time fit it, and the file is not read")
    func unread() async throws {
        let right = try #require(ExpectedDigest(.crc32, hex: Self.crc.hex))
        for policy in [.skip, .fail, .rename] as [DownloadOptions.ExistingFilePolicy] {
            try await WatchedPart.run { subject in
                try Self.finished(subject, crc: CRC32())
                subject.disk.fail("read file.bin", .other)
                #expect(try Self.existing(subject, policy)?.record != nil)
                try FileManager.default.setAttributes(
                    [.modificationDate: Date(timeIntervalSince1970: 1000)], ofItemAtPath: subject.paths.destination)
                #expect(try Self.existing(subject, policy)?.record == nil)
                #expect(await condition { try Self.existing(subject, .verify) } == .other)
            }
        }
        // A digest decides alone.
        try await WatchedPart.run { subject in
            try Self.finished(subject, crc: CRC32())
            let file = try #require(try Self.existing(subject, .verify, digests: [right]))
            #expect(file.isIdentified == true && file.record != nil)
        }
    }

    @Test("A file that was not synced is known by its content only: after a power cut its time may be right")
    func unsynced() async throws {
        for (crc, isKnown) in [(Self.crc, true), (CRC32(), false)] {
            try await WatchedPart.run { subject in
                try Self.finished(subject, crc: crc, isSynced: false)
                #expect((try Self.existing(subject)?.record != nil) == isKnown)
            }
        }
    }

    @Test("All digests must agree")
    func digests() async throws {
        let right = try #require(ExpectedDigest(.crc32, hex: Self.crc.hex))
        let wrong = try #require(ExpectedDigest(.md5, hex: String(repeating: "0", count: 32)))
        for (digests, agrees) in [([right], true), ([right, wrong], false), ([], nil)]
            as [([ExpectedDigest], Bool?)]
        {
            try await WatchedPart.run { subject in
                try Self.finished(subject)
                let file = try #require(try Self.existing(subject, digests: digests))
                #expect(file.isIdentified == agrees)
            }
        }
    }

    @Test("Digests of pieces count beside others")
    func pieces() async throws {
        let right = try #require(ExpectedDigest(.crc32, hex: Self.crc.hex))
        for (hex, digests, agrees) in [
            (Self.crc.hex, [], true), ("00000000", [], false), ("00000000", [right], false),
            (Self.crc.hex, [right], true),
        ] as [(String, [ExpectedDigest], Bool)] {
            try await WatchedPart.run { subject in
                try Self.finished(subject, crc: Self.crc)
                var surveyor = Surveyor(storage: subject.disk, digests: digests)
                surveyor.pieceDigests = Metalink.PieceDigests(length: 10, algorithm: .crc32, hexes: [hex])
                guard case .existing(let file) = try surveyor.survey(subject.paths, policy: .verify).survey else {
                    Issue.record("no file")
                    return
                }
                #expect(file.isIdentified == agrees)
            }
        }
    }

    @Test("A record that others may have written proves nothing, where a file is to be verified without a digest")
    func foreignRecord() async throws {
        let right = try #require(ExpectedDigest(.crc32, hex: Self.crc.hex))
        try await WatchedPart.run { subject in
            try Self.finished(subject, crc: Self.crc)
            try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: subject.paths.destination)
            #expect(await subject.surveyCode(.verify) == .exists)
            #expect(try Self.existing(subject, .skip) != nil)
            #expect(try Self.existing(subject, .verify, digests: [right])?.isIdentified == true)
        }
        try await WatchedPart.run { subject in
            try Self.finished(subject)
            try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: subject.paths.destination)
            #expect(try Self.existing(subject, .verify)?.record == nil)
        }
    }

    @Test("A record counts although others may write to the file, if they may write to every new file there")
    func grantedRecord() async throws {
        for (permissions, isTrusted) in [(0o664, true), (0o644, true), (0o646, false), (0o666, false)] as [(Int, Bool)]
        {
            try await WatchedPart.run { subject in
                try Self.finished(subject, crc: Self.crc)
                subject.disk.permitNew(0o664)
                try FileManager.default.setAttributes(
                    [.posixPermissions: permissions], ofItemAtPath: subject.paths.destination)
                if isTrusted {
                    #expect(try Self.existing(subject, .verify)?.record != nil)
                } else {
                    #expect(await subject.surveyCode(.verify) == .exists)
                }
            }
        }
    }

    @Test("A file to be overwritten is overlooked, and a link there is no file to be kept")
    func overwritten() async throws {
        try await WatchedPart.run { subject in
            subject.part.close()
            try Self.finished(subject, crc: Self.crc)
            let finding = try subject.survey(.overwrite)
            #expect(finding.survey == .nothing)
            finding.part?.close()
            try FileManager.default.removeItem(atPath: subject.paths.destination)
            try FileManager.default.createSymbolicLink(
                atPath: subject.paths.destination, withDestinationPath: "elsewhere")
            #expect(await subject.surveyCode(.verify) == .exists)
        }
    }
}
