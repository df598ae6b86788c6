import Foundation
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// How a part whose bytes are all there becomes the destination, step by step on the disk.
@Suite("Finishing a part file")
struct FinisherTests {
    private static var sha1: String {
        var digest = RunningDigest(.sha1)
        WatchedPart.bytes(0..<100).withUnsafeBytes { digest.update($0) }
        return digest.hex
    }

    /// Runs `body` with a part of 100 bytes that are all claimed, its manifest in place.
    private static func run(
        keepsRemoteTime: Bool = false, _ body: (WatchedPart, inout Finisher) async throws -> Void
    ) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<60, 60..<100)
            _ = try await subject.part.checkpoint(isPause: false)
            // So that the record can be completed. A file that was written within 10 ms is read in any case.
            try subject.part.file.setModified(1_000_000_000)
            _ = subject.disk.take()
            var finisher = Self.finisher(subject, keepsRemoteTime: keepsRemoteTime)
            try await body(subject, &finisher)
        }
    }

    private static func finisher(
        _ subject: WatchedPart, _ resource: RemoteResource = WatchedPart.resource(100), digests: [ExpectedDigest] = [],
        replaces: Bool = false, keepsRemoteTime: Bool = false
    ) -> Finisher {
        Finisher(
            storage: subject.disk, part: subject.part, resource: resource, digests: digests, replaces: replaces,
            keepsRemoteTime: keepsRemoteTime)
    }

    private static let describe = "describe " + WatchedPart.partName
    private static let syncPart = "sync all of " + WatchedPart.partName
    private static let rename = "rename " + WatchedPart.partName + " to file.bin"
    private static let forget = "remove " + WatchedPart.manifestName

    @Test("A placed file has the permissions of any new file, unless its part got others")
    func permissions() async throws {
        for (part, new, placed) in [
            (0o644, 0o664, 0o664), (0o640, 0o660, 0o660), (0o644, 0o644, 0o644), (0o600, 0o664, 0o600),
            (0o644, 0o666, 0o666),
        ] as [(UInt32, UInt32, UInt32)] {
            try await Self.run { subject, finisher in
                subject.disk.permitNew(new)
                try subject.part.file.setPermissions(part)
                _ = try await finisher.finish(length: 100, unless: Latch())
                #expect(try subject.disk.status(of: subject.paths.destination)?.ownership.permissions == placed)
            }
        }
    }

    @Test("A file that replaces another one gets its permissions, but no more writers than a new file")
    func permissionsReplaced() async throws {
        for (old, placed) in [(0o600, 0o600), (0o755, 0o755), (0o666, 0o664)] as [(UInt32, UInt32)] {
            try await Self.run { subject, _ in
                let path = subject.paths.destination
                try Data("old".utf8).write(to: URL(fileURLWithPath: path))
                try FileManager.default.setAttributes([.posixPermissions: Int(old)], ofItemAtPath: path)
                subject.disk.permitNew(0o664)
                try subject.part.file.setPermissions(0o644)
                _ = try await Self.finisher(subject, replaces: true).finish(length: 100, unless: Latch())
                #expect(try subject.disk.status(of: path)?.ownership.permissions == placed)
            }
        }
    }

    @Test("A file is described, synced, named and dated, its name is synced, and then the manifest goes")
    func order() async throws {
        try await Self.run { subject, finisher in
            let own = try subject.part.file.status()
            let result = try await finisher.finish(length: 100, unless: Latch())
            #expect(
                subject.disk.take() == [
                    Self.describe, Self.syncPart, Self.rename, Self.describe, "sync names", Self.forget,
                ])
            #expect(try subject.contents(of: subject.paths.destination) == WatchedPart.bytes(0..<100))
            #expect(!subject.exists(subject.paths.manifest) && !subject.exists(subject.paths.part))
            #expect(subject.disk.openNames.isEmpty)
            #expect(result.file.length == 100 && result.file.crc == CRC32(of: WatchedPart.bytes(0..<100)))
            #expect(result.paths == subject.paths && result.status?.isSameFile(as: own) == true)
            #expect(result.file.content.hexes == [.crc32: CRC32(of: WatchedPart.bytes(0..<100)).hex])
        }
    }

    @Test("A finished file is found again by its record, with nothing read, before or after")
    func record() async throws {
        try await Self.run { subject, finisher in
            subject.disk.fail("read " + WatchedPart.partName, .other)
            let own = try subject.part.file.status()
            let result = try await finisher.finish(length: 100, unless: Latch())
            let file = try subject.disk.open(subject.paths.destination, .read)
            defer { file.close() }
            let record = try #require(file.attribute(FinishedRecord.attribute).flatMap { FinishedRecord(decoding: $0) })
            #expect(record.length == 100 && record.crc == result.file.crc && record.pieces == [record.crc])
            #expect(try record.modified == file.status().modified)
            #expect(record.resource.validator == WatchedPart.resource(100).validator && record.isSynced)
            // Before the attribute was written the second time, which is a change, too.
            let changed = try #require(record.changed)
            #expect(try changed >= own.changed && changed <= file.status().changed)
        }
    }

    @Test("A record is not completed if the file has another time by then, or another record")
    func incompleteRecord() async throws {
        for isReplaced in [false, true] {
            try await Self.run { subject, finisher in
                let path = subject.paths.part
                let other = Array("another record".utf8)
                subject.disk.before(Self.rename) {
                    let file = try subject.disk.open(path, .update)
                    defer { file.close() }
                    if isReplaced {
                        _ = try file.setAttribute(FinishedRecord.attribute, other)
                    } else {
                        try file.writeFully(WatchedPart.bytes(0..<1), at: 0)
                    }
                }
                _ = try await finisher.finish(length: 100, unless: Latch())
                let file = try subject.disk.open(subject.paths.destination, .read)
                defer { file.close() }
                let found = try #require(file.attribute(FinishedRecord.attribute))
                if isReplaced {
                    #expect(found == other)
                } else {
                    let record = try #require(FinishedRecord(decoding: found))
                    #expect(try record.changed == nil && record.modified != file.status().modified)
                }
            }
        }
    }

    @Test("A record that cannot be completed stays as it is, and the file is finished")
    func uncompletedRecord() async throws {
        try await Self.run { subject, finisher in
            subject.disk.before(Self.rename) { subject.disk.fail(Self.describe, .other) }
            _ = try await finisher.finish(length: 100, unless: Latch())
            let file = try subject.disk.open(subject.paths.destination, .read)
            defer { file.close() }
            let record = try #require(file.attribute(FinishedRecord.attribute).flatMap { FinishedRecord(decoding: $0) })
            #expect(record.changed == nil && !subject.exists(subject.paths.manifest))
        }
    }

    @Test("Without syncs neither data nor name is synced")
    func unsynced() async throws {
        try await Self.run { subject, finisher in
            subject.part.keep(.none)
            _ = try await finisher.finish(length: 100, unless: Latch())
            #expect(subject.disk.take() == [Self.describe, Self.rename, Self.forget])
            let file = try subject.disk.open(subject.paths.destination, .read)
            defer { file.close() }
            let record = try #require(file.attribute(FinishedRecord.attribute).flatMap { FinishedRecord(decoding: $0) })
            #expect(!record.isSynced)
        }
    }

    @Test("The server's date is given to the file before its record tells of it", arguments: [false, true])
    func remoteTime(keeps: Bool) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<100)
            _ = subject.disk.take()
            let resource = RemoteResource(
                completeLength: 100,
                validator: Validator(tagFields: [], dateFields: ["Tue, 14 Nov 2023 22:13:20 GMT"]))
            _ = try await Self.finisher(subject, resource, keepsRemoteTime: keeps).finish(length: 100, unless: Latch())
            let calls = subject.disk.take()
            let date = "date 1700000000 " + WatchedPart.partName
            #expect(calls.prefix(2) == (keeps ? [date, Self.describe] : [Self.describe, Self.syncPart]))
        }
    }

    // MARK: Records

    @Test("Where the record has no room the file is not described, and a record of an earlier file is taken away")
    func noAttributes() async throws {
        try await Self.run { subject, finisher in
            subject.disk.forbidAttributes()
            _ = try await finisher.finish(length: 100, unless: Latch())
            #expect(
                subject.disk.take()
                    == [
                        Self.describe, Self.describe, "clear " + WatchedPart.partName, Self.syncPart, Self.rename,
                        "sync names", Self.forget,
                    ])
        }
    }

    @Test("In a job, a file without a record is recorded before it gets its name, and recognized by its content")
    func placingRecord() async throws {
        for keepsAttributes in [false, true] {
            try await Self.run { subject, finisher in
                let directory = subject.paths.directory + "/job"
                try subject.disk.makeDirectory(directory)
                let job = JobDirectory(directory, storage: subject.disk)
                let log = PlacingLog(job, path: directory + "/placing")
                let entry = EntryFingerprint(high: 1, share: 1)
                finisher.placing = PlacingRecord(of: entry, earlier: [], in: log)
                if !keepsAttributes { subject.disk.forbidAttributes() }
                let result = try await finisher.finish(length: 100, unless: Latch())
                let calls = subject.disk.take()
                let recording = ["create privately placing", "write placing", "sync placing", "sync names"]
                let expected = [Self.syncPart] + (keepsAttributes ? [] : recording) + [Self.rename]
                #expect(calls.filter { (expected + recording).contains($0) }.starts(with: expected))

                let content = ContentSummary(length: 100, crc: try #require(result.file.crc))
                let other = ContentSummary(length: 100, crc: CRC32())
                for (earlier, agrees) in [([content], true), ([other], nil), ([other, content], true), ([], nil)]
                    as [([ContentSummary], Bool?)]
                {
                    var surveyor = Surveyor(storage: subject.disk)
                    surveyor.placing = PlacingRecord(of: entry, earlier: earlier, in: log)
                    guard case .existing(let file) = try surveyor.survey(subject.paths, policy: .verify).survey else {
                        Issue.record("no file")
                        return
                    }
                    #expect(file.isIdentified == agrees)
                }
            }
        }
    }

    @Test("A body that ends with its connection leaves no record: nothing proves that it is whole")
    func endsWithConnection() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<100)
            var resource = WatchedPart.resource(100)
            resource.endsWithConnection = true
            _ = subject.disk.take()
            _ = try await Self.finisher(subject, resource).finish(length: 100, unless: Latch())
            #expect(subject.disk.take().first == "clear " + WatchedPart.partName)
        }
    }

    @Test("A record that cannot be taken away is not believed: the file gets another date where it would fit")
    func staleRecord() async throws {
        for (length, isFitting, isDated) in [(100, true, true), (99, true, false), (100, false, false)]
            as [(Int64, Bool, Bool)]
        {
            try await Self.run { subject, finisher in
                let file = subject.part.file
                // A whole second, for the next one to be known.
                try file.setModified(1_700_000_000)
                let modified: Int64 = 1_700_000_000_000_000_000 + (isFitting ? 0 : 1)
                let stale = FinishedRecord(
                    resource: WatchedPart.resource(length), length: length, crc: CRC32(), modified: modified)
                #expect(try file.setAttribute(FinishedRecord.attribute, stale.encoded))
                subject.disk.forbidAttributes()
                _ = subject.disk.take()
                _ = try await finisher.finish(length: 100, unless: Latch())
                #expect(subject.disk.take().contains("date 1700000001 " + WatchedPart.partName) == isDated)
            }
        }
    }

    // MARK: What is verified

    @Test("A file with missing claims is not finished")
    func incomplete() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<60)
            let finisher = Self.finisher(subject)
            #expect(await failureCode { try await finisher.finish(length: 100, unless: Latch()) } == .internal)
            #expect(subject.exists(subject.paths.part))
        }
    }

    @Test("A digest that differs is a failure that the manifest records, and nothing is named")
    func wrongDigest() async throws {
        try await Self.run { subject, _ in
            let digest = try #require(ExpectedDigest(.sha1, hex: String(repeating: "0", count: 40)))
            let finisher = Self.finisher(subject, digests: [digest])
            #expect(await failureCode { try await finisher.finish(length: 100, unless: Latch()) } == .integrity)
            #expect(try subject.manifest()?.isRejected == true)
            #expect(subject.exists(subject.paths.part) && !subject.exists(subject.paths.destination))
        }
    }

    @Test("A file whose pieces differ is not named, and the manifest records that")
    func pieces() async throws {
        let hexes = [0..<60, 60..<100].map { (range: Range<Int64>) in
            var digest = RunningDigest(.sha1)
            WatchedPart.bytes(range).withUnsafeBytes { digest.update($0) }
            return digest.hex
        }
        for (hexes, isRight) in [(hexes, true), ([hexes[0], hexes[0]], false), ([hexes[0]], false)] {
            try await Self.run { subject, finisher in
                finisher.pieceDigests = Metalink.PieceDigests(length: 60, algorithm: .sha1, hexes: hexes)
                let finisher = finisher
                let code = await failureCode { try await finisher.finish(length: 100, unless: Latch()) }
                #expect(code == (isRight ? nil : .integrity))
                #expect(subject.exists(subject.paths.destination) == isRight)
                let manifest = try subject.manifest()
                #expect(isRight ? manifest == nil : manifest?.isRejected == true)
            }
        }
    }

    @Test("Digests that are expected or wanted are in the result, each once")
    func digests() async throws {
        try await Self.run { subject, _ in
            let crc = CRC32(of: WatchedPart.bytes(0..<100)).hex
            let expected = [ExpectedDigest(.sha1, hex: Self.sha1), ExpectedDigest(.crc32, hex: crc)].compactMap { $0 }
            var finisher = Self.finisher(subject, digests: expected)
            finisher.computedDigests = [.md5, .crc32]
            let result = try await finisher.finish(length: 100, unless: Latch())
            let hexes = result.file.content.hexes
            #expect(Set(hexes.keys) == [.sha1, .md5, .crc32])
            #expect(hexes[.sha1] == Self.sha1 && hexes[.crc32] == crc)
            #expect(result.file.requirements.digests == expected)
        }
    }

    @Test("A part that was deleted or replaced is not named", arguments: [false, true])
    func replacedPart(isReplaced: Bool) async throws {
        try await Self.run { subject, finisher in
            // A second name, so that only the first is gone.
            if isReplaced {
                try FileManager.default.linkItem(atPath: subject.paths.part, toPath: subject.paths.part + "2")
            }
            try FileManager.default.removeItem(atPath: subject.paths.part)
            if isReplaced { try subject.put("another file", at: subject.paths.part) }
            let finisher = finisher
            #expect(await failureCode { try await finisher.finish(length: 100, unless: Latch()) } == .file)
            #expect(!subject.exists(subject.paths.destination))
        }
    }

    @Test("A part that is replaced while it is synced is not named")
    func replacedWhileSynced() async throws {
        try await Self.run { subject, finisher in
            subject.disk.before(Self.syncPart) {
                try FileManager.default.removeItem(atPath: subject.paths.part)
                try subject.put("another file", at: subject.paths.part)
            }
            let finisher = finisher
            #expect(await failureCode { try await finisher.finish(length: 100, unless: Latch()) } == .file)
            #expect(!subject.exists(subject.paths.destination))
        }
    }

    @Test("A part that was cut is fetched again where bytes are missing, and no pause calls it untouched")
    func cut() async throws {
        try await Self.run { subject, finisher in
            try subject.part.file.truncate(to: 99)
            let finisher = finisher
            do {
                _ = try await finisher.finish(length: 100, unless: Latch())
                Issue.record("a part of 99 bytes was finished as one of 100")
            } catch let failure as DownloadError {
                #expect(failure.code == .integrity && failure.isTransient)
            }
            _ = try await subject.part.checkpoint(isPause: true)
            #expect(try subject.manifest()?.pausedModified == nil)
        }
    }

    @Test("A part that was cut and has grown again with zeros is found out by its holes")
    func holes() async throws {
        try await WatchedPart.run { subject in
            let length: Int64 = 256 << 10
            try await subject.part.begin(
                WatchedPart.resource(length), id: 7, sources: [], digests: [], allocates: false)
            try subject.fill(0..<length)
            try subject.part.file.truncate(to: 100)
            try subject.part.file.truncate(to: length)
            let finisher = Self.finisher(subject, WatchedPart.resource(length))
            #expect(await failureCode { try await finisher.finish(length: length, unless: Latch()) } == .integrity)
            _ = try await subject.part.checkpoint(isPause: true)
            #expect(try subject.manifest()?.pausedModified == nil)
        }
    }

    @Test("A file whose content is zeros is finished, even if it has holes")
    func rightHoles() async throws {
        try await WatchedPart.run { subject in
            let length: Int64 = 256 << 10
            try await subject.part.begin(
                WatchedPart.resource(length), id: 7, sources: [], digests: [], allocates: false)
            let crc = CRC32(of: [UInt8](repeating: 0, count: Int(length)))
            try subject.part.claim(Claim(offset: 0, length: length, crc: crc))
            let finisher = Self.finisher(subject, WatchedPart.resource(length))
            #expect(try await finisher.finish(length: length, unless: Latch()).file.crc == crc)
        }
    }

    @Test("What was reserved behind the end is cut off")
    func surplus() async throws {
        try await Self.run { subject, finisher in
            try subject.part.file.truncate(to: 130)
            _ = subject.disk.take()
            _ = try await finisher.finish(length: 100, unless: Latch())
            #expect(subject.disk.take().first == "truncate to 100 " + WatchedPart.partName)
            #expect(try subject.contents(of: subject.paths.destination) == WatchedPart.bytes(0..<100))
        }
    }

    // MARK: Names

    @Test("A destination that has come to exist is left alone, and the part stays")
    func taken() async throws {
        try await Self.run { subject, finisher in
            try subject.put("mine", at: subject.paths.destination)
            let finisher = finisher
            #expect(await failureCode { try await finisher.finish(length: 100, unless: Latch()) } == .exists)
            #expect(try subject.contents(of: subject.paths.destination) == Array("mine".utf8))
            #expect(subject.exists(subject.paths.part) && subject.exists(subject.paths.manifest))
        }
    }

    @Test("A name that the server gave the part before it was asked again is the part's, which then has no other")
    func linkedBefore() async throws {
        try await Self.run { subject, finisher in
            subject.disk.before(Self.rename) {
                try FileManager.default.linkItem(atPath: subject.paths.part, toPath: subject.paths.destination)
            }
            _ = try await finisher.finish(length: 100, unless: Latch())
            #expect(try subject.contents(of: subject.paths.destination) == WatchedPart.bytes(0..<100))
            #expect(!subject.exists(subject.paths.part) && !subject.exists(subject.paths.manifest))
        }
    }

    @Test("A part that the server renamed over a file before it was asked again is in place")
    func renamedBefore() async throws {
        try await Self.run { subject, _ in
            try subject.put("old", at: subject.paths.destination)
            subject.disk.before("rename over \(WatchedPart.partName) to file.bin") {
                try subject.disk.rename(subject.paths.part, to: subject.paths.destination, replacing: true)
            }
            _ = try await Self.finisher(subject, replaces: true).finish(length: 100, unless: Latch())
            #expect(try subject.contents(of: subject.paths.destination) == WatchedPart.bytes(0..<100))
        }
    }

    @Test("A taken name gives way to the first numbered one that no file has and no process fetches for")
    func alternative() async throws {
        try await Self.run { subject, finisher in
            let names = { @Sendable (number: Int) in
                number > 3 ? nil : DestinationPaths(directory: subject.paths.directory, name: "file.\(number).bin")
            }
            try subject.put("mine", at: subject.paths.destination)
            try subject.put("mine", at: subject.paths.directory + "/file.1.bin")
            try subject.put("fetching", at: subject.paths.directory + "/file.2.bin.segdl-part")
            finisher.alternative = names
            let result = try await finisher.finish(length: 100, unless: Latch())
            #expect(result.paths?.name == "file.3.bin")
            #expect(try subject.contents(of: subject.paths.directory + "/file.3.bin") == WatchedPart.bytes(0..<100))
        }
    }

    @Test("Names run out: the part stays")
    func noAlternative() async throws {
        try await Self.run { subject, finisher in
            try subject.put("mine", at: subject.paths.destination)
            finisher.alternative = { _ in nil }
            let finisher = finisher
            #expect(await failureCode { try await finisher.finish(length: 100, unless: Latch()) } == .exists)
            #expect(subject.exists(subject.paths.part))
        }
    }

    @Test("A file is replaced only as it was when that was decided", arguments: [false, true])
    func replaceable(isChanged: Bool) async throws {
        try await Self.run { subject, _ in
            try subject.put("old", at: subject.paths.destination)
            var finisher = Self.finisher(subject, replaces: true)
            finisher.replaceable = try subject.disk.status(of: subject.paths.destination)
            if isChanged { try subject.put("newer", at: subject.paths.destination) }
            let whole = finisher
            let code = await failureCode { try await whole.finish(length: 100, unless: Latch()) }
            #expect(code == (isChanged ? .exists : nil))
            #expect(
                try subject.contents(of: subject.paths.destination)
                    == (isChanged ? Array("newer".utf8) : WatchedPart.bytes(0..<100)))
        }
    }

    @Test("A file to be replaced that is gone meanwhile keeps nothing from its place")
    func replaceableGone() async throws {
        try await Self.run { subject, _ in
            var finisher = Self.finisher(subject, replaces: true)
            finisher.replaceable = try subject.part.file.status()
            _ = try await finisher.finish(length: 100, unless: Latch())
            #expect(subject.exists(subject.paths.destination))
        }
    }

    @Test("What was put in another's place under the part's name is not reported as the file")
    func swapped() async throws {
        try await Self.run { subject, finisher in
            subject.disk.before(Self.rename) {
                try FileManager.default.removeItem(atPath: subject.paths.part)
                try subject.put("another file", at: subject.paths.part)
            }
            let finisher = finisher
            #expect(await failureCode { try await finisher.finish(length: 100, unless: Latch()) } == .file)
        }
    }

    @Test("If the name cannot be synced the file is in place, the failure says so, and the manifest stays")
    func unsyncedName() async throws {
        try await Self.run { subject, finisher in
            subject.disk.fail("sync names", .other)
            let finisher = finisher
            do {
                _ = try await finisher.finish(length: 100, unless: Latch())
                Issue.record("a name that could not be synced was called durable")
            } catch let failure as DownloadError {
                #expect(failure.message.contains("is complete and in place"))
            }
            #expect(subject.exists(subject.paths.destination) && subject.exists(subject.paths.manifest))
        }
    }

    @Test("A file that gets another inode number with its name is known by owner, permissions and bytes")
    func renumbered() async throws {
        try await Self.run { subject, finisher in
            subject.disk.renumberRenamed()
            let before = try subject.part.file.status()
            let result = try await finisher.finish(length: 100, unless: Latch())
            let placed = try #require(try subject.disk.status(of: subject.paths.destination))
            #expect(!placed.isSameFile(as: before) && result.status == placed)
            #expect(try subject.contents(of: subject.paths.destination) == WatchedPart.bytes(0..<100))
            #expect(!subject.exists(subject.paths.manifest) && !subject.exists(subject.paths.part))
        }
    }

    @Test("A manifest that got another inode number is known by its id, and one of another part stays")
    func renumberedManifest() async throws {
        for isOther in [false, true] {
            try await Self.run { subject, finisher in
                let path = subject.paths.manifest
                var bytes = try subject.contents(of: path)
                if isOther { bytes = ManifestCodec.magic }
                try FileManager.default.removeItem(atPath: path)
                try Data(bytes).write(to: URL(fileURLWithPath: path + "2"))
                try FileManager.default.moveItem(atPath: path + "2", toPath: path)
                _ = try await finisher.finish(length: 100, unless: Latch())
                #expect(subject.exists(path) == isOther)
            }
        }
    }

    @Test("Another file in the part's place is not taken for it, though it has the same length, or the same bytes")
    func replacedWhileRenumbered() async throws {
        let bytes = WatchedPart.bytes(0..<100)
        for (content, permissions) in [(bytes.reversed(), 0o644), (bytes, 0o666)] as [([UInt8], Int)] {
            try await Self.run { subject, finisher in
                let path = subject.paths.part
                try subject.part.file.setPermissions(0o644)
                subject.disk.before(Self.rename) {
                    try FileManager.default.removeItem(atPath: path)
                    try Data(content).write(to: URL(fileURLWithPath: path))
                    try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
                }
                let finisher = finisher
                #expect(await failureCode { try await finisher.finish(length: 100, unless: Latch()) } == .file)
            }
        }
    }

    @Test(
        "Where nothing can be renamed without replacing, the file gets its name by a link that keeps its identity, or by a claim",
        arguments: WatchedStorage.Links.allCases, [false, true])
    func claimed(links: WatchedStorage.Links, isTaken: Bool) async throws {
        try await Self.run { subject, finisher in
            subject.disk.setLinks(links)
            subject.disk.fail(Self.rename, .unsupported)
            if isTaken { try subject.put("mine", at: subject.paths.destination) }
            let finisher = finisher
            let code = await failureCode { try await finisher.finish(length: 100, unless: Latch()) }
            #expect(code == (isTaken ? .exists : nil))
            #expect(
                try subject.contents(of: subject.paths.destination)
                    == (isTaken ? Array("mine".utf8) : WatchedPart.bytes(0..<100)))
            #expect(!subject.exists(subject.paths.manifestDraft))
            #expect(subject.exists(subject.paths.manifest) == isTaken)
            let names = try subject.disk.names(in: subject.paths.directory).filter { !$0.hasPrefix(".") }
            #expect(names.sorted() == ["file.bin"] + (isTaken ? ["file.bin.segdl", "file.bin.segdl-part"] : []))
        }
    }

    @Test("A link of which the server has lost its answer has given the file its name")
    func linkUnanswered() async throws {
        try await Self.run { subject, finisher in
            subject.disk.fail(Self.rename, .unsupported)
            subject.disk.linkFacts[try subject.part.file.status().device] = true
            subject.disk.before("link \(WatchedPart.partName) to file.bin") {
                try FileManager.default.linkItem(atPath: subject.paths.part, toPath: subject.paths.destination)
            }
            _ = try await finisher.finish(length: 100, unless: Latch())
            #expect(try subject.contents(of: subject.paths.destination) == WatchedPart.bytes(0..<100))
            #expect(!subject.exists(subject.paths.part) && !subject.exists(subject.paths.manifest))
        }
    }

    @Test("What was set aside is deleted once the file is in place, and before the manifest")
    func setAside() async throws {
        try await Self.run { subject, finisher in
            let manifest = try subject.contents(of: subject.paths.manifest)
            for slot in 1...2 {
                let aside = subject.paths.setAside(slot: slot)
                try subject.put("old bytes", at: aside.part)
                try Data(try #require(ManifestCodec.encoded(manifest, setAside: true))).write(
                    to: URL(fileURLWithPath: aside.manifest))
            }
            _ = try await finisher.finish(length: 100, unless: Latch())
            #expect(
                subject.disk.take().suffix(5) == [
                    "remove file.bin.segdl-old-2.segdl-part", "remove file.bin.segdl-old-2.segdl",
                    "remove file.bin.segdl-old.segdl-part", "remove file.bin.segdl-old.segdl", Self.forget,
                ])
        }
    }

    @Test("Another download that has the name of a part set aside stays")
    func otherDownload() async throws {
        try await Self.run { subject, finisher in
            let other = subject.paths.setAside(slot: 1)
            try subject.put("mine", at: other.part)
            try FileManager.default.copyItem(atPath: subject.paths.manifest, toPath: other.manifest)
            _ = try await finisher.finish(length: 100, unless: Latch())
            #expect(try subject.contents(of: other.part) == Array("mine".utf8) && subject.exists(other.manifest))
            #expect(!subject.exists(subject.paths.manifest))
        }
    }
}
