import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

@Suite("Plans of shared files")
struct SharedFilePlanTests {
    /// What ``SharedFilePlan`` writes, for any length.
    private static func plan(length: Int64) -> [UInt8] {
        var label = Manifest.Label()
        label.userInfo = ["segdl-tasks": "3", "segdl-alignment": "1048576"]
        return ManifestCodec.encode(
            Manifest.Header(
                id: 1, resource: RemoteResource(completeLength: length, validator: .none), completeLength: length,
                device: 0, inode: 1, bootID: "", sources: ["http://h/f"], digests: [], label: label))
    }

    @Test("A plan is read if its file can be divided; one of an impossible length is none")
    func lengths() throws {
        for length in [1, 1 << 30, FileDivision.lengthMax] {
            #expect(try SharedFilePlan(decoding: Self.plan(length: length))?.division.length == length)
        }
        for length in [FileDivision.lengthMax + 1, .max] {
            #expect(try SharedFilePlan(decoding: Self.plan(length: length)) == nil)
        }
    }

    private static func resource(isDateWeak: Bool) -> RemoteResource {
        RemoteResource(
            completeLength: 100,
            validator: Validator(
                entityTag: nil, lastModified: HTTPDate(secondsSinceEpoch: 1_700_000_000), isDateWeak: isDateWeak),
            locator: .named(ResourceName(requested: "http://host/f", target: "http://host/f")))
    }

    private static func plan(isDateWeak: Bool) throws -> SharedFilePlan {
        SharedFilePlan(
            id: 1, try #require(FileDivision(count: 2, length: 100, alignment: 1)),
            of: Self.resource(isDateWeak: isDateWeak),
            DownloadRequest(try SourceURL("http://host/f"), to: .file("f")), inode: 0)
    }

    /// A plan with digests, of a file that a server at `host` sends with a strong tag.
    private static func plan(_ digests: [ExpectedDigest], announced: ExpectedDigest? = nil) throws -> SharedFilePlan {
        var request = DownloadRequest(try SourceURL("http://host/f"), to: .file("f"))
        request.digests = digests
        return SharedFilePlan(
            id: 1, try #require(FileDivision(count: 2, length: 100, alignment: 1)),
            of: Self.resource(at: "host", stating: announced), request, inode: 0)
    }

    private static func resource(at host: String, stating digest: ExpectedDigest? = nil) -> RemoteResource {
        var resource = RemoteResource(
            completeLength: 100,
            validator: Validator(entityTag: EntityTag(fieldValue: "\"a\""), lastModified: nil),
            locator: .named(ResourceName(requested: "http://\(host)/f", target: "http://\(host)/f")))
        resource.state([digest].compactMap(\.self))
        return resource
    }

    /// The error for a task of such a plan; nil if it may fetch its range.
    private static func refusal(
        _ plan: SharedFilePlan, at host: String, given: [ExpectedDigest] = [], announced: ExpectedDigest? = nil
    ) -> DownloadError? {
        do throws(DownloadError) {
            try plan.check(Self.resource(at: host, stating: announced), given: given, directory: "f.segdl-tasks")
            return nil
        } catch {
            return error
        }
    }

    @Test("A task with other request fields than the plan is refused, also after the plan was stored")
    func selection() throws {
        let plan = SharedFilePlan(
            id: 1, try #require(FileDivision(count: 2, length: 100, alignment: 1)), of: Self.resource(at: "host"),
            DownloadRequest(try SourceURL("http://host/f"), to: .file("f")), selection: ["x-v": "1"], inode: 0)
        let stored = try #require(try SharedFilePlan(decoding: plan.encoded))
        for plan in [plan, stored] {
            for (selection, isRefused) in [(["x-v": "1"], false), (["x-v": "2"], true), ([:], true)] {
                let error = failure {
                    try plan.check(
                        Self.resource(at: "host"), given: [], selection: selection, directory: "f.segdl-tasks")
                }
                #expect(error?.code == (isRefused ? .changed : nil))
            }
        }
    }

    private func failure(of body: () throws -> Void) -> DownloadError? {
        do {
            try body()
            return nil
        } catch {
            return error as? DownloadError
        }
    }

    @Test("A digest admits another place only if the task that goes there states it, too")
    func otherPlace() throws {
        let digest = try #require(ExpectedDigest("crc32=00000001"))
        let stronger = try #require(ExpectedDigest(.md5, hex: String(repeating: "0", count: 32)))
        for plan in [try Self.plan([digest]), try Self.plan([], announced: digest)] {
            #expect(Self.refusal(plan, at: "host") == nil)
            #expect(Self.refusal(plan, at: "other")?.code == .changed)
            #expect(Self.refusal(plan, at: "other", given: [stronger])?.code == .changed)
            #expect(Self.refusal(plan, at: "other", announced: stronger)?.code == .changed)
            #expect(Self.refusal(plan, at: "other", given: [digest]) == nil)
            #expect(Self.refusal(plan, at: "other", announced: digest) == nil)
        }
        #expect(Self.refusal(try Self.plan([]), at: "other", given: [digest])?.code == .changed)
    }

    @Test("A digest that contradicts the plan's is another file, also with the same tag")
    func otherDigest() throws {
        let own = try #require(ExpectedDigest("crc32=00000001"))
        let other = try #require(ExpectedDigest("crc32=00000002"))
        let plan = try Self.plan([own])
        #expect(Self.refusal(plan, at: "host", given: [own]) == nil)
        let refusal = try #require(Self.refusal(plan, at: "host", given: [other]))
        #expect(refusal.code == .changed && refusal.message.contains("crc32=00000001"), "\(refusal)")
        #expect(Self.refusal(plan, at: "host", announced: other)?.code == .changed)
        // As for any download, the user's digest takes precedence over the server's.
        #expect(Self.refusal(plan, at: "host", given: [own], announced: other) == nil)
    }

    @Test("Whether a date proves the version of a range depends on the plan's response, not on the task's")
    func weakDate() throws {
        let plan = try Self.plan(isDateWeak: false)
        for isDateWeak in [false, true] {
            let required = try #require(plan.resource(of: 0..<50, as: Self.resource(isDateWeak: isDateWeak)))
            #expect(required.isProvable && required.completeLength == 50)
        }
        #expect(try Self.plan(isDateWeak: true).resource(of: 0..<50, as: Self.resource(isDateWeak: false)) == nil)
    }
}
