import Foundation
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// What is made of a destination, a part and a manifest that an earlier run left.
@Suite("Surveying a destination")
struct SurveyorTests {
    // MARK: Parts

    /// Runs `body` with `0..<50` durable and `50..<80` pending of 100 bytes, or all durable after a pause; closed.
    private static func interrupted(isPaused: Bool, _ body: (WatchedPart) async throws -> Void) async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<50)
            if !isPaused { _ = try await subject.part.checkpoint(isPause: false) }
            try subject.fill(50..<80)
            if isPaused { _ = try await subject.part.checkpoint(isPause: true) }
            subject.part.close()
            try await body(subject)
            #expect(subject.disk.openNames.isEmpty)
        }
    }

    /// What is missing by a survey, and how many claims are durable after what may be damaged.
    private static func missing(_ subject: WatchedPart) throws -> [Range<Int64>]? {
        let finding = try subject.survey()
        defer { finding.part?.close() }
        guard case .partial(let saved) = finding.survey else { return nil }
        #expect((finding.note != nil) == (saved.missing != [80..<100]))
        #expect(saved.completeLength == 100 && saved.resource.validator == WatchedPart.resource(100).validator)
        return saved.missing
    }

    private static func damage(_ path: String, at offset: UInt64) throws {
        let modified = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate]
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: offset)
        try file.write(contentsOf: Data([0xFF]))
        try file.close()
        if let modified {
            try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: path)
        }
    }

    @Test("After a pause nothing is read back, and after a crash everything is", arguments: [false, true])
    func believed(isPaused: Bool) async throws {
        try await Self.interrupted(isPaused: isPaused) { subject in
            #expect(try Self.missing(subject) == [80..<100])
            // Behind our back, and with the time it had.
            let path = subject.paths.part
            var times = stat()
            _ = stat(path, &times)
            try Self.damage(path, at: 10)
            let restored = [times.st_atim, times.st_mtim]
            _ = utimensat(AT_FDCWD, path, restored, 0)
            #expect(try Self.missing(subject) == (isPaused ? [80..<100] : [0..<50, 80..<100]))
            // What the survey did not read is read before the file is placed.
            let part = try #require(try subject.survey().part)
            defer { part.close() }
            #expect((part.readBack != nil) == isPaused)
            #expect(try part.damagedClaims(unless: Latch()).map(\.range) == (isPaused ? [0..<80] : []))
        }
    }

    @Test("A part that is not as the pause left it is read back: another time, length, file or boot")
    func changed() async throws {
        let changes: [(String, (WatchedPart) throws -> Void)] = [
            ("time", { try Self.damage($0.paths.part, at: 10) }),
            (
                "boot",
                { subject in
                    try Self.damage(subject.paths.part, at: 10)
                    subject.disk.bootID = "another"
                }
            ),
            (
                "file",
                { subject in
                    try FileManager.default.copyItem(atPath: subject.paths.part, toPath: subject.paths.part + "2")
                    try FileManager.default.removeItem(atPath: subject.paths.part)
                    try FileManager.default.moveItem(atPath: subject.paths.part + "2", toPath: subject.paths.part)
                    try Self.damage(subject.paths.part, at: 10)
                }
            ),
            (
                "length",
                { subject in
                    try Self.damage(subject.paths.part, at: 10)
                    let file = try subject.disk.open(subject.paths.part, .update)
                    try file.truncate(to: 120)
                    file.close()
                }
            ),
        ]
        for (name, change) in changes {
            try await Self.interrupted(isPaused: true) { subject in
                try change(subject)
                let missing = try Self.missing(subject)
                #expect(missing == [0..<50, 80..<100], "\(name)")
            }
        }
    }

    @Test("Bytes behind the end of a part that was cut are missing")
    func cut() async throws {
        try await Self.interrupted(isPaused: true) { subject in
            let file = try subject.disk.open(subject.paths.part, .update)
            try file.truncate(to: 79)
            file.close()
            #expect(try Self.missing(subject) == [50..<100])
        }
    }

    @Test("Claims keep apart what is durable, and digests go no further than the first missing byte")
    func continued() async throws {
        try await WatchedPart.run { subject in
            try await subject.begin(1000)
            let part = PartialFile(
                paths: subject.paths, file: subject.part.file, storage: subject.disk, header: subject.part.header,
                claims: [WatchedPart.claim(0..<128), WatchedPart.claim(128..<300)],
                digestStates: [128, 256, 384].map {
                    DigestState(algorithm: UInt8($0 / 128), offset: $0, bytes: [UInt8](repeating: 1, count: 16))
                })
            try subject.write(0..<300)
            _ = try await part.checkpoint(isPause: false)
            part.close()
            let found = try #require(try subject.survey().part)
            #expect(found.claimedLength == 300 && found.digestStates.map(\.offset).sorted() == [128, 256])
            found.close()
        }
    }

    @Test(
        "What was stated about bytes that are withdrawn is kept with other bytes, and dropped if none are",
        arguments: [([50..<80], true), ([0..<50, 50..<80], false)] as [([Range<Int64>], Bool)])
    func statements(withdrawn: [Range<Int64>], isKept: Bool) async throws {
        let digest = try #require(ExpectedDigest(.crc32, hex: CRC32().hex))
        try await WatchedPart.run { subject in
            try await subject.begin(100)
            try subject.fill(0..<50, 50..<80)
            try subject.part.state([StatedDigest(digest, of: 50..<80)])
            try await subject.part.withdraw(withdrawn.map { WatchedPart.claim($0) })
            subject.part.close()
            let part = try #require(try subject.survey().part)
            defer { part.close() }
            #expect(part.contentsStated.map(\.range) == (isKept ? [50..<80] : []))
        }
    }

    @Test("A rejected part says so, and one without the digest is not believed by others")
    func rejected() async throws {
        try await Self.interrupted(isPaused: false) { subject in
            for isRejected in [false, true] {
                if isRejected {
                    let part = try #require(try subject.survey().part)
                    try await part.adopt(
                        id: 9, resource: WatchedPart.resource(100), limit: nil, sources: [], digests: [])
                    try part.reject()
                    part.close()
                }
                let finding = try subject.survey()
                finding.part?.close()
                guard case .partial(let saved) = finding.survey else {
                    Issue.record("the part was not found")
                    return
                }
                #expect(saved.isRejected == isRejected)
            }
        }
    }

    @Test("A part without a manifest, or with a damaged one, is begun anew, and nothing of it is believed")
    func begunAnew() async throws {
        for text in [nil, "SEGDLMAN", "SEGDLMAN\u{1}\u{0}aaaa"] as [String?] {
            try await WatchedPart.run { subject in
                try subject.write(0..<50)
                if let text { try subject.put(text, at: subject.paths.manifest) }
                subject.part.close()
                let finding = try subject.survey()
                #expect(finding.survey == .nothing && finding.note != nil && !finding.isUnlocked)
                #expect(finding.part?.claimedLength == 0)
                finding.part?.close()
            }
        }
    }

    @Test(
        "A manifest of a later version is neither read nor replaced, with a part or without", arguments: [false, true])
    func laterVersion(hasPart: Bool) async throws {
        try await WatchedPart.run { subject in
            subject.part.close()
            if !hasPart { try FileManager.default.removeItem(atPath: subject.paths.part) }
            try Data(ManifestCodec.magic + [0xFF, 0x7F, 0, 0]).write(to: URL(fileURLWithPath: subject.paths.manifest))
            #expect(await subject.surveyCode() == .state)
            #expect(subject.disk.openNames.isEmpty && subject.exists(subject.paths.manifest))
        }
    }

    @Test("A manifest without a part cannot be resumed, and another file of that name is not replaced")
    func manifestAlone() async throws {
        for (text, code) in [("SEGDLMAN", nil), ("", nil), ("my own notes", .exists)] as [(String, DownloadError.Code?)]
        {
            try await WatchedPart.run { subject in
                subject.part.close()
                try FileManager.default.removeItem(atPath: subject.paths.part)
                try subject.put(text, at: subject.paths.manifest)
                #expect(await subject.surveyCode() == code)
                if code == nil { #expect(try subject.survey().survey == .nothing) }
            }
        }
    }

    @Test("What is not a part of the user's own is not touched: a directory, a second name, another user's")
    func foreignPart() async throws {
        let changes: [(String) throws -> Void] = [
            {
                try FileManager.default.removeItem(atPath: $0)
                try FileManager.default.createDirectory(atPath: $0, withIntermediateDirectories: false)
            },
            { try FileManager.default.linkItem(atPath: $0, toPath: $0 + "2") },
            { try FileManager.default.setAttributes([.posixPermissions: 0o620], ofItemAtPath: $0) },
        ]
        for change in changes {
            try await Self.interrupted(isPaused: true) { subject in
                try change(subject.paths.part)
                #expect(await subject.surveyCode() == .exists)
            }
        }
        try await Self.interrupted(isPaused: true) { subject in
            subject.disk.user += 1
            #expect(await subject.surveyCode() == .exists)
        }
    }

    @Test("A manifest that others may have written is not believed")
    func foreignManifest() async throws {
        try await Self.interrupted(isPaused: true) { subject in
            try FileManager.default.setAttributes([.posixPermissions: 0o620], ofItemAtPath: subject.paths.manifest)
            #expect(await subject.surveyCode() == .exists)
            try FileManager.default.removeItem(atPath: subject.paths.manifest)
            try FileManager.default.createDirectory(
                atPath: subject.paths.manifest, withIntermediateDirectories: false)
            #expect(await subject.surveyCode() == .exists)
        }
    }

    @Test("A part that another process holds, or has replaced or finished before it was locked, is left to it")
    func inUse() async throws {
        try await Self.interrupted(isPaused: true) { subject in
            let holder = try subject.disk.open(subject.paths.part, .update)
            #expect(try holder.tryLock() == .taken)
            #expect(await subject.surveyCode() == .exists)
            holder.close()
            let path = subject.paths.part
            subject.disk.before("lock " + WatchedPart.partName) { _ = rename(path, path + "2") }
            #expect(await subject.surveyCode() == .exists)
        }
    }

    @Test("Where the file system has no locks the part is found all the same, and that is said")
    func unlocked() async throws {
        try await Self.interrupted(isPaused: true) { subject in
            subject.disk.setLock(.unsupported)
            let finding = try subject.survey()
            #expect(finding.isUnlocked && finding.part?.claimedLength == 80)
            finding.part?.close()
        }
    }

    // MARK: Manifests by name

    @Test("A manifest is known by its mark, or by the zeros that a crash left in its place")
    func marks() async throws {
        try await WatchedPart.run { subject in
            let path = subject.paths.manifest
            #expect(try subject.disk.isManifest(path) == nil && !subject.disk.hasManifest(subject.paths))
            for (text, isManifest) in [
                ("SEGDLMAN and more", true), ("", true), ("\u{0}\u{0}\u{0}", true), ("SEG", true), ("SEGX", false),
            ] {
                try subject.put(text, at: path)
                #expect(try subject.disk.isManifest(path) == isManifest)
                #expect(try subject.disk.hasManifest(subject.paths) == isManifest)
            }
            try FileManager.default.removeItem(atPath: path)
            try subject.put("SEGDLMAN", at: subject.paths.manifestDraft)
            #expect(try subject.disk.hasManifest(subject.paths))
            subject.part.close()
            #expect(subject.disk.openNames.isEmpty)
        }
    }

    @Test("A file is the same with the same identity, length and time, and unchanged if it has both times")
    func sameFile() {
        let status = StorageStatus(
            kind: .file, length: 1, device: 2, inode: 3, linkCount: 1, allocated: 4, modified: 5, changed: 6)
        let changes: [((inout StorageStatus) -> Void, Bool, Bool, Bool)] = [
            ({ $0.allocated = 0 }, true, true, true), ({ $0.length = 0 }, true, false, false),
            ({ $0.modified = 0 }, true, false, false), ({ $0.changed = 0 }, true, true, false),
            ({ $0.device = 0 }, false, false, false), ({ $0.inode = 0 }, false, false, false),
        ]
        for (change, isSameFile, isSame, isUnchanged) in changes {
            var other = status
            change(&other)
            #expect(status.isSameFile(as: other) == isSameFile && status.isSame(as: other) == isSame)
            #expect(status.isUnchanged(since: other) == isUnchanged)
        }
    }
}
