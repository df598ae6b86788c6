import Foundation
import Origin
import Synchronization
import TestSupport
import Testing

/// Every method and notification of aria2's JSON-RPC, as the section RPC INTERFACE of aria2's manual describes them.
///
/// `ComingFromAria2RPC.md` lists what differs on purpose. The tests state these differences where they meet them.
@Suite("aria2's RPC by its manual") struct Aria2MethodTests {
    /// The methods of the manual, and whether they fail without parameters.
    private static let methods = [
        "aria2.addUri": true, "aria2.addTorrent": true, "aria2.addMetalink": true, "aria2.remove": true,
        "aria2.forceRemove": true, "aria2.pause": true, "aria2.pauseAll": false, "aria2.forcePause": true,
        "aria2.forcePauseAll": false, "aria2.unpause": true, "aria2.unpauseAll": false, "aria2.tellStatus": true,
        "aria2.getUris": true, "aria2.getFiles": true, "aria2.getPeers": true, "aria2.getServers": true,
        "aria2.tellActive": false, "aria2.tellWaiting": true, "aria2.tellStopped": true, "aria2.changePosition": true,
        "aria2.changeUri": true, "aria2.getOption": true, "aria2.changeOption": true, "aria2.getGlobalOption": false,
        "aria2.changeGlobalOption": true, "aria2.getGlobalStat": false, "aria2.purgeDownloadResult": false,
        "aria2.removeDownloadResult": true, "aria2.getVersion": false, "aria2.getSessionInfo": false,
        "aria2.shutdown": false, "aria2.forceShutdown": false, "aria2.saveSession": false, "system.multicall": true,
        "system.listMethods": false, "system.listNotifications": false,
    ]

    /// The documented methods that always fail, and their error.
    private static let unsupported = ["aria2.addTorrent": "BitTorrent is not supported"]

    /// Those of the manual except `aria2.onBtDownloadComplete`, which is for BitTorrent.
    private static let notifications = [
        "aria2.onDownloadStart", "aria2.onDownloadPause", "aria2.onDownloadStop", "aria2.onDownloadComplete",
        "aria2.onDownloadError",
    ]

    /// The keys of `aria2.tellStatus` that the manual does not restrict to BitTorrent, to metalinks or to states.
    private static let statusKeys: Set<String> = [
        "gid", "status", "totalLength", "completedLength", "uploadLength", "downloadSpeed", "uploadSpeed",
        "pieceLength", "numPieces", "connections", "dir", "files",
    ]

    /// A GID that no download has.
    private static let unknownGID = "0000000000000000"

    private static func run(
        _ options: [String] = [], _ body: @escaping @Sendable (RPCClient, Service, Origin) async throws -> Void
    ) async throws {
        // Few connections: each brings 4 MiB of a stalled file, and many would complete it.
        try await RPCClient.run(["--rpc-allow-private", "-s", "2"] + options, body)
    }

    /// The URL of 64 MiB of which each connection gets 4 MiB, until the origin has another query for the name.
    private static func stalled(_ name: String, _ origin: Origin) -> String {
        origin.plainURL("/64M/\(name)?stall-after=4M:all")
    }

    // MARK: The methods

    @Test("Every method of the manual is listed and answers, and a method of BitTorrent has a clear error")
    func methods() async throws {
        try await Self.run { client, _, _ in
            // "This method does not require secret token."
            let listed = try await client.response(to: #"{"jsonrpc":"2.0","id":1,"method":"system.listMethods"}"#)
            #expect(listed["result"]?.texts.sorted() == Self.methods.keys.sorted())
            let notifications = try await client.response(
                to: #"{"jsonrpc":"2.0","id":1,"method":"system.listNotifications"}"#)
            #expect(notifications["result"]?.texts.sorted() == Self.notifications.sorted())
            for (method, needsParameters) in Self.methods where !method.lowercased().hasSuffix("shutdown") {
                let failure = try await client.failure(method)
                if let message = Self.unsupported[method] {
                    #expect(failure == RPCClient.Failure(code: 1, message: message))
                } else if needsParameters {
                    #expect(failure?.code == 1, "\(method)")
                    #expect(failure?.message.hasPrefix("The parameter at 0 ") == true, "\(method): \(failure as Any)")
                } else {
                    #expect(failure == nil, "\(method)")
                }
            }
        }
    }

    // MARK: Adding

    @Test("addUri returns a GID of 16 digits, and puts the download in its position of the waiting queue or last")
    func addURI() async throws {
        try await Self.run(["-j", "1"]) { client, _, origin in
            let active = try await client.add(Self.stalled("a.bin", origin))
            #expect(active.wholeMatch(of: #/[0-9a-f]{16}/#) != nil)
            _ = try await client.status(of: active) { $0["status"]?.text == "active" }
            let (url, mirror) = (origin.url("/1M/b.bin"), origin.url("/1M/c.bin"))
            let last = try await client.result("aria2.addUri", [url, mirror], ["pause": "true"]).text
            let second = try #require(last)
            let uris = try await client.result("aria2.getUris", second)
            #expect(uris.elements?.compactMap { $0["uri"]?.text } == [url, mirror])
            // Not paused: it waits because one download may run at once.
            let first = try #require(try await client.result("aria2.addUri", [url], [String: String](), 0).text)
            #expect(try await client.waiting() == [first, second])
            let middle = try #require(try await client.result("aria2.addUri", [url], ["pause": "true"], 1).text)
            #expect(try await client.waiting() == [first, middle, second])
            let end = try #require(try await client.result("aria2.addUri", [url], ["pause": "true"], 100).text)
            #expect(try await client.waiting() == [first, middle, second, end])
            #expect(try await client.state(of: first) == "waiting")
            #expect(try await client.state(of: end) == "paused")
            let negative = try await client.failure("aria2.addUri", [url], [String: String](), -1)
            #expect(negative?.code == 1)
            #expect(try await client.failure("aria2.addUri", [String]())?.code == 1)
            let magnet = try await client.failure("aria2.addUri", ["magnet:?xt=urn:btih:0"])
            #expect(magnet == RPCClient.Failure(code: 1, message: "BitTorrent is not supported"))
            #expect(try await client.waiting().count == 4)
        }
    }

    @Test("Options are names of the command line with texts, and header may be an array")
    func options() async throws {
        try await Self.run { client, service, origin in
            let options: [String: Any] = [
                "dir": service.command.path("files/sub"), "out": "b.bin", "gid": "0123456789abcdef",
                "header": ["X-One: 1", "X-Two: 2"], "user-agent": "test", "referer": "http://x.example/", "split": "1",
            ]
            let gid = try await client.result("aria2.addUri", [origin.url("/1M/a.bin")], options).text
            #expect(gid == "0123456789abcdef")
            #expect(try await service.run("wait", "0123456789abcdef").status == 0)
            #expect(service.command.exists("files/sub/b.bin"))
            let request = try #require(origin.log.snapshot(path: "/1M/a.bin").requests.first)
            #expect(request["x-one"] == "1" && request["x-two"] == "2" && request["user-agent"] == "test")
            #expect(request["referer"] == "http://x.example/")
            // One field may also be a string. A GID can be used once.
            let other = try await client.add(origin.url("/1M/c.bin"), ["header": "X-One: 3"])
            #expect(try await service.run("wait", other).status == 0)
            #expect(origin.log.snapshot(path: "/1M/c.bin").requests.first?["x-one"] == "3")
            let taken = try await client.failure("aria2.addUri", [origin.url("/1M/d.bin")], ["gid": "0123456789abcdef"])
            #expect(taken?.code == 1)
        }
    }

    /// A metalink in base64.
    private static func metalink(_ names: [String], _ origin: Origin) -> String {
        let files = names.map { "<file name=\"\($0)\"><url>\(origin.url("/1M/\($0)"))</url></file>" }
        let text = "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\(files.joined())</metalink>"
        return Data(text.utf8).base64EncodedString()
    }

    @Test("addMetalink returns the GIDs of its files, in their position of the waiting queue")
    func addMetalink() async throws {
        try await Self.run { client, service, origin in
            let pause = ["pause": "true"]
            let last = try await client.add(origin.url("/1M/z.bin"), pause)
            let two = Self.metalink(["a.bin", "b.bin"], origin)
            let front = try await client.result("aria2.addMetalink", two, pause, 0).texts
            try #require(Set(front).count == 2)
            #expect(try await client.waiting() == front + [last])
            let others = Self.metalink(["c.bin", "d.bin"], origin)
            let middle = try await client.result("aria2.addMetalink", others, pause, 1).texts
            #expect(try await client.waiting() == [front[0]] + middle + [front[1], last])
            // Without options and position.
            let plain = try await client.result("aria2.addMetalink", Self.metalink(["e.bin"], origin)).texts
            #expect(plain.count == 1)
            #expect(try await client.result("aria2.unpauseAll") == JSON.string("OK"))
            for gid in plain + front { #expect(try await service.run("wait", gid).status == 0) }
            for name in ["a.bin", "b.bin", "e.bin"] { #expect(service.command.exists("files/\(name)"), "\(name)") }
            #expect(try await client.failure("aria2.addMetalink", "no base64!")?.code == 1)
            let torrent = try await client.failure("aria2.addTorrent", "ZGU=", [String](), [String: String](), 0)
            #expect(torrent == RPCClient.Failure(code: 1, message: "BitTorrent is not supported"))
        }
    }

    // MARK: Removing and pausing

    @Test("remove and forceRemove stop a download, whose status becomes removed, and its partial file stays")
    func remove() async throws {
        try await Self.run(["-j", "1"]) { client, service, origin in
            var gids: [String] = []
            for name in ["a.bin", "b.bin", "c.bin"] {
                gids.append(try await client.add(Self.stalled(name, origin), ["split": "1"]))
            }
            _ = try await client.status(of: gids[0]) { $0["completedLength"]?.integer ?? 0 >= 1 << 20 }
            #expect(try await client.result("aria2.remove", gids[0]) == JSON.string(gids[0]))
            #expect(try await service.run("wait", gids[0]).status == 130)
            #expect(service.command.exists("files/a.bin.segdl-part"))
            _ = try await client.status(of: gids[1]) { $0["status"]?.text == "active" }
            #expect(try await client.result("aria2.forceRemove", gids[1]) == JSON.string(gids[1]))
            #expect(try await service.run("wait", gids[1]).status == 130)
            // One that does not run.
            let waiting = try await client.add(origin.url("/1M/d.bin"), ["pause": "true"])
            #expect(try await client.result("aria2.remove", waiting) == JSON.string(waiting))
            #expect(try await client.waiting().isEmpty)
            for gid in [gids[0], gids[1], waiting] { #expect(try await client.state(of: gid) == "removed") }
            let stopped = try await client.result("aria2.tellStopped", 0, 10, ["gid"]).gids
            #expect(stopped == [gids[0], gids[1], waiting])
            #expect(try await client.failure("aria2.remove", gids[0])?.code == 1)
            #expect(try await client.failure("aria2.forceRemove", Self.unknownGID)?.code == 1)
        }
    }

    @Test("pause and forcePause put an active download in front of the waiting queue, and unpause makes it wait")
    func pause() async throws {
        try await Self.run(["-j", "1"]) { client, _, origin in
            let one = try await client.add(Self.stalled("a.bin", origin))
            let two = try await client.add(Self.stalled("b.bin", origin))
            let three = try await client.add(Self.stalled("c.bin", origin))
            _ = try await client.status(of: one) { $0["status"]?.text == "active" }
            #expect(try await client.waiting() == [two, three])
            #expect(try await client.result("aria2.pause", one) == JSON.string(one))
            #expect(try await client.state(of: one) == "paused")
            _ = try await client.status(of: two) { $0["status"]?.text == "active" }
            #expect(try await client.waiting() == [one, three])
            #expect(try await client.result("aria2.forcePause", two) == JSON.string(two))
            _ = try await client.status(of: three) { $0["status"]?.text == "active" }
            // "If the download was active, the download is placed in the front of waiting queue."
            #expect(try await client.waiting() == [two, one])
            #expect(try await client.failure("aria2.pause", one)?.code == 1)
            #expect(try await client.failure("aria2.unpause", three)?.code == 1)
            #expect(try await client.result("aria2.unpause", one) == JSON.string(one))
            #expect(try await client.state(of: one) == "waiting")
            // "While the status is paused, the download is not started."
            _ = try await client.result("aria2.remove", three)
            _ = try await client.status(of: one) { $0["status"]?.text == "active" }
            #expect(try await client.state(of: two) == "paused")
        }
    }

    @Test("pauseAll, forcePauseAll and unpauseAll act on every download that runs, waits or is paused")
    func pauseAll() async throws {
        try await Self.run(["-j", "1"]) { client, service, origin in
            let failed = try await client.add(origin.url("/1M/missing.bin?fail=404:all"))
            _ = try await service.run("wait", failed)
            let one = try await client.add(Self.stalled("a.bin", origin))
            let two = try await client.add(Self.stalled("b.bin", origin))
            for method in ["aria2.pauseAll", "aria2.forcePauseAll"] {
                _ = try await client.status(of: one) { $0["status"]?.text == "active" }
                #expect(try await client.state(of: two) == "waiting")
                #expect(try await client.result(method) == JSON.string("OK"))
                for gid in [one, two] { #expect(try await client.state(of: gid) == "paused", "\(method)") }
                #expect(try await client.result("aria2.tellActive") == JSON.array([]))
                #expect(try await client.result("aria2.unpauseAll") == JSON.string("OK"))
                for gid in [one, two] { #expect(try await client.state(of: gid) != "paused", "\(method)") }
            }
            // It is not paused.
            #expect(try await client.state(of: failed) == "error")
        }
    }

    // MARK: Telling

    @Test("tellStatus has the documented keys in each state, texts for numbers, and only the keys that are asked for")
    func tellStatus() async throws {
        try await Self.run { client, service, origin in
            let url = Self.stalled("a.bin", origin)
            let gid = try await client.add(url, ["out": "a.bin", "split": "2", "pause": "true"])
            let waiting = try await client.result("aria2.tellStatus", gid)
            #expect(waiting.keys == Self.statusKeys)
            #expect(waiting["gid"] == JSON.string(gid) && waiting["status"] == JSON.string("paused"))
            #expect(waiting["dir"] == JSON.string(service.command.path("files")))
            for (key, value) in waiting.members ?? [:] where key != "files" {
                #expect(value.text != nil, "\(key) is \(value)")
            }
            for (keys, answered) in [
                (["gid", "status"], ["gid", "status"]), ([], Self.statusKeys), (["gid", "bittorrent"], ["gid"]),
            ] as [([String], Set<String>)] {
                #expect(try await client.result("aria2.tellStatus", gid, keys).keys == answered, "\(keys)")
            }
            // "You can specify only the prefix of a GID as long as it is unique among others."
            let prefix = String(gid.prefix(8))
            #expect(try await client.result("aria2.tellStatus", prefix, ["gid"]) == JSON.object(["gid": .string(gid)]))

            _ = try await client.result("aria2.unpause", gid)
            let active = try await client.status(of: gid) { status in
                // The first piece, which is the highest bit.
                status["bitfield"]?.text?.first.map { "89abcdef".contains($0) } == true
                    && status["completedLength"]?.integer ?? 0 >= 1 << 20
            }
            #expect(active.keys == Self.statusKeys.union(["bitfield"]))
            #expect(active["status"] == JSON.string("active") && active["totalLength"] == JSON.string("67108864"))
            #expect(active["pieceLength"] == JSON.string("1048576") && active["numPieces"] == JSON.string("64"))
            #expect(active["bitfield"]?.text?.count == 16 && active["connections"]?.integer ?? 0 >= 1)

            _ = try await client.result("aria2.pause", gid)
            let paused = try await client.status(of: gid) { $0["connections"] == JSON.string("0") }
            #expect(paused["completedLength"]?.integer ?? 0 >= 1 << 20)
            // Absent only "when the download was not started yet".
            #expect(paused.keys == Self.statusKeys.union(["bitfield"]))

            _ = origin.plainURL("/64M/a.bin")
            _ = try await client.result("aria2.unpause", gid)
            #expect(try await service.run("wait", gid).status == 0)
            let complete = try await client.result("aria2.tellStatus", gid)
            #expect(complete.keys == Self.statusKeys.union(["bitfield", "errorCode", "errorMessage"]))
            #expect(complete["status"] == JSON.string("complete") && complete["errorCode"] == JSON.string("0"))
            #expect(complete["completedLength"] == JSON.string("67108864"))
            #expect(complete["bitfield"] == JSON.string("ffffffffffffffff"))
            for key in ["downloadSpeed", "uploadSpeed", "uploadLength", "connections"] {
                #expect(complete[key] == JSON.string("0"), "\(key)")
            }
        }
    }

    @Test("tellStatus of a failed download has aria2's error code, and a wrong GID is an error")
    func tellStatusOfFailure() async throws {
        try await Self.run { client, service, origin in
            let gid = try await client.add(origin.url("/1M/a.bin?fail=404:all"))
            _ = try await service.run("wait", gid)
            let status = try await client.result("aria2.tellStatus", gid)
            // 3: "a resource was not found", in the section EXIT STATUS.
            #expect(status["status"] == JSON.string("error") && status["errorCode"] == JSON.string("3"))
            #expect(status["errorMessage"]?.text?.isEmpty == false)
            #expect(status.keys.isSuperset(of: Self.statusKeys))
            for method in [
                "tellStatus", "getUris", "getFiles", "getPeers", "getServers", "getOption", "pause", "forcePause",
                "unpause", "remove", "forceRemove", "removeDownloadResult",
            ] {
                for (gid, message) in [
                    (Self.unknownGID, "GID \(Self.unknownGID) is not found"), ("no digits", "Invalid GID no digits"),
                ] {
                    let failure = try await client.failure("aria2.\(method)", gid)
                    #expect(failure == RPCClient.Failure(code: 1, message: message), "\(method)")
                }
            }
        }
    }

    @Test("tellActive and tellWaiting list the structs of tellStatus, and negative offsets count from the last")
    func lists() async throws {
        try await Self.run(["-j", "1"]) { client, _, origin in
            let active = try await client.add(Self.stalled("d.bin", origin), ["split": "1"])
            var gids: [String] = []
            for name in ["a.bin", "b.bin", "c.bin"] {
                gids.append(try await client.add(origin.url("/1M/\(name)"), ["pause": "true"]))
            }
            // The examples of the manual, and ranges that are partly or wholly outside.
            let pages: [(offset: Int, count: Int, gids: [String])] = [
                (0, 1, [gids[0]]), (1, 2, [gids[1], gids[2]]), (-1, 2, [gids[2], gids[1]]), (0, 10, gids),
                (-2, 10, [gids[1], gids[0]]), (-3, 1, [gids[0]]), (3, 1, []), (0, 0, []),
            ]
            for (offset, count, expected) in pages {
                let page = try await client.result("aria2.tellWaiting", offset, count, ["gid"])
                #expect(page.gids == expected && page.elements?.count == expected.count, "\(offset), \(count)")
            }
            let first = try await client.result("aria2.tellStatus", gids[0])
            #expect(try await client.result("aria2.tellWaiting", 0, 1) == JSON.array([first]))
            #expect(try await client.failure("aria2.tellWaiting", 0, -1)?.code == 1)
            #expect(try await client.failure("aria2.tellWaiting", 0)?.code == 1)

            let status = try await client.status(of: active) { $0["bitfield"] != nil }
            let running = try await client.result("aria2.tellActive").elements ?? []
            #expect(running.count == 1)
            #expect(running.first?.keys == status.keys)
            let object = JSON.object(["gid": .string(active), "status": .string("active")])
            #expect(try await client.result("aria2.tellActive", ["gid", "status"]) == JSON.array([object]))
        }
    }

    @Test("tellStopped lists the structs of tellStatus: failed downloads, then the others, the least recent first")
    func tellStopped() async throws {
        try await Self.run { client, service, origin in
            var gids: [String] = []
            for query in ["a.bin", "b.bin?fail=404:all", "c.bin"] {
                let gid = try await client.add(origin.url("/1M/\(query)"))
                _ = try await service.run("wait", gid)
                gids.append(gid)
            }
            // Unlike in aria2, a failed download can be resumed, and is in the queue, not in its history.
            let order = [gids[1], gids[0], gids[2]]
            #expect(try await client.result("aria2.tellStopped", 0, 10, ["gid"]).gids == order)
            #expect(try await client.result("aria2.tellStopped", -1, 2, ["gid"]).gids == [gids[2], gids[0]])
            #expect(try await client.result("aria2.tellStopped", 1, 1, ["gid"]).gids == [gids[0]])
            let stopped = try await client.result("aria2.tellStopped", 0, 10).elements ?? []
            #expect(stopped.count == 3)
            for status in stopped {
                let gid = try #require(status["gid"]?.text)
                let own = try await client.result("aria2.tellStatus", gid)
                #expect(status == own)
            }
            #expect(try await client.result("aria2.tellActive") == JSON.array([]))
            #expect(try await client.waiting().isEmpty)
        }
    }

    @Test("getUris and getFiles say which URL is in use, and getFiles has the file of each state")
    func urisAndFiles() async throws {
        try await Self.run { client, service, origin in
            let (url, mirror) = (Self.stalled("a.bin", origin), Self.stalled("b.bin", origin))
            let options = ["pause": "true", "out": "a.bin", "split": "1"]
            let gid = try #require(try await client.result("aria2.addUri", [url, mirror], options).text)
            let path = JSON.string(service.command.path("files/a.bin"))
            let unused = try await client.result("aria2.getUris", gid)
            let expected = [url, mirror].map { uri in
                JSON.object(["uri": .string(uri), "status": .string("waiting")])
            }
            #expect(unused == JSON.array(expected))
            let waiting = try #require(try await client.result("aria2.getFiles", gid).elements?.first)
            #expect(waiting.keys == ["index", "path", "length", "completedLength", "selected", "uris"])
            #expect(waiting["index"] == JSON.string("1") && waiting["selected"] == JSON.string("true"))
            #expect(waiting["path"] == path && waiting["uris"] == unused)

            _ = try await client.result("aria2.unpause", gid)
            _ = try await client.status(of: gid) { $0["completedLength"]?.integer ?? 0 >= 1 << 20 }
            #expect(try await client.usedURIs(of: gid) == [url])
            let active = try #require(try await client.result("aria2.getFiles", gid).elements?.first)
            #expect(active["length"] == JSON.string("67108864"))
            for name in ["a.bin", "b.bin"] { _ = origin.plainURL("/64M/\(name)") }
            _ = try await client.result("aria2.pause", gid)
            _ = try await client.result("aria2.unpause", gid)
            #expect(try await service.run("wait", gid).status == 0)
            let complete = try #require(try await client.result("aria2.getFiles", gid).elements?.first)
            #expect(complete["length"] == JSON.string("67108864") && complete["completedLength"] == complete["length"])
            #expect(complete["path"] == path)

            #expect(complete["uris"]?.elements?.isEmpty == false)
            // Unlike in aria2, a query is not kept, because it may be secret, and the URL is another one without it.
            let queried = origin.url("/1M/c.bin?seed=2")
            let again = try await client.add(queried)
            #expect(try await service.run("wait", again).status == 0)
            let file = try await client.result("aria2.getFiles", again).elements?.first
            #expect(file?["uris"] == JSON.array([]))
        }
    }

    @Test("The second URL is in use while the first does not answer with the file")
    func usedMirror() async throws {
        try await Self.run { client, _, origin in
            let (gone, mirror) = (origin.url("/64M/gone.bin?fail=404:all"), Self.stalled("a.bin", origin))
            let options = ["split": "1", "out": "a.bin"]
            let gid = try #require(try await client.result("aria2.addUri", [gone, mirror], options).text)
            _ = try await client.status(of: gid) { $0["completedLength"]?.integer ?? 0 >= 1 << 20 }
            #expect(try await client.usedURIs(of: gid) == [mirror])
        }
    }

    @Test("getServers names the servers in use and the URLs behind redirects, and HTTP has no peers")
    func servers() async throws {
        try await Self.run { client, _, origin in
            _ = Self.stalled("a.bin", origin)
            let moved = origin.url("/64M/moved.bin?redirect=302:/64M/a.bin")
            let gid = try await client.add(moved, ["split": "1"])
            _ = try await client.status(of: gid) { $0["completedLength"]?.integer ?? 0 >= 1 << 20 }
            var servers: [JSON] = []
            repeat {
                let files = try await client.result("aria2.getServers", gid).elements ?? []
                try #require(files.count == 1)
                #expect(files[0].keys == ["index", "servers"])
                #expect(files[0]["index"] == JSON.string("1"))
                servers = files[0]["servers"]?.elements ?? []
            } while servers.isEmpty
            #expect(servers.count == 1)
            #expect(servers[0].keys == ["uri", "currentUri", "downloadSpeed"])
            #expect(servers[0]["uri"] == JSON.string(moved) && servers[0]["downloadSpeed"]?.integer != nil)
            // Unlike in aria2, it is not the URL behind a redirect, which may have a secret.
            #expect(servers[0]["currentUri"] == JSON.string(moved))
            #expect(try await client.result("aria2.getPeers", gid) == JSON.array([]))
            _ = try await client.result("aria2.pause", gid)
            #expect(try await client.failure("aria2.getServers", gid)?.code == 1)
        }
    }

    // MARK: Changing

    @Test("changePosition moves relative to the start, to the position or to the end, and returns the new position")
    func changePosition() async throws {
        try await Self.run(["-j", "1"]) { client, _, origin in
            // Not in the waiting queue.
            let active = try await client.add(Self.stalled("active.bin", origin))
            _ = try await client.status(of: active) { $0["status"]?.text == "active" }
            var gids: [String: String] = [:]
            for name in ["a", "b", "c", "d"] {
                gids[name] = try await client.add(origin.url("/1M/\(name)"), ["pause": "true"])
            }
            let moves: [(name: String, place: Int, how: String, result: Double, order: String)] = [
                ("c", 0, "POS_SET", 0, "cabd"), ("b", -1, "POS_CUR", 1, "cbad"), ("c", 1, "POS_CUR", 1, "bcad"),
                ("b", 0, "POS_END", 3, "cadb"), ("c", -1, "POS_END", 2, "adcb"), ("b", -10, "POS_CUR", 0, "badc"),
                ("b", 99, "POS_SET", 3, "adcb"), ("a", 5, "POS_END", 3, "dcba"), ("c", 0, "POS_CUR", 1, "dcba"),
                ("a", -2, "POS_SET", 0, "adcb"),
            ]
            for (name, place, how, result, order) in moves {
                let gid = try #require(gids[name])
                let position = try await client.result("aria2.changePosition", gid, place, how)
                #expect(position == JSON.number(result), "\(name), \(place), \(how)")
                let expected = order.compactMap { gids[String($0)] }
                #expect(try await client.waiting() == expected, "\(name), \(place), \(how)")
            }
            let gid = try #require(gids["a"])
            #expect(try await client.failure("aria2.changePosition", gid, 0, "POS_OTHER")?.code == 1)
            #expect(try await client.failure("aria2.changePosition", gid, 0)?.code == 1)
            #expect(try await client.failure("aria2.changePosition", active, 0, "POS_SET")?.code == 1)
            #expect(try await client.failure("aria2.changePosition", Self.unknownGID, 0, "POS_SET")?.code == 1)
        }
    }

    @Test("changeUri deletes, then adds at a position, and returns how many URLs it deleted and added")
    func changeURI() async throws {
        try await Self.run { client, _, origin in
            let url = { (name: String) in origin.url("/1M/\(name).bin") }
            let gid = try await client.add(url("a"), ["pause": "true"])
            let none: [String] = []
            let changes: [(deleted: [String], added: [String], position: Int?, counts: [Double], order: String)] = [
                (none, ["b", "c"], nil, [0, 2], "abc"), (["b"], ["d"], 0, [1, 1], "dac"),
                // The position counts once the URLs are deleted.
                (["d"], ["e"], 1, [1, 1], "aec"), (["x"], none, nil, [0, 0], "aec"),
                (none, ["a"], nil, [0, 1], "aeca"),
                // One of two that are equal.
                (["a"], none, nil, [1, 0], "eca"), (none, ["f"], 100, [0, 1], "ecaf"),
                (["e", "c", "a", "f"], ["g"], nil, [4, 1], "g"),
            ]
            for (deleted, added, position, counts, order) in changes {
                var parameters: [Any] = [gid, 1, deleted.map(url), added.map(url)]
                if let position { parameters.append(position) }
                let message = try client.message(of: "aria2.changeUri", parameters)
                let result = try await client.response(to: message)["result"]
                #expect(result?.elements?.compactMap(\.double) == counts, "\(deleted), \(added)")
                let uris = try await client.result("aria2.getUris", gid).elements ?? []
                let expected = order.map { url(String($0)) }
                #expect(uris.compactMap { $0["uri"]?.text } == expected, "\(deleted), \(added)")
            }
            // Numbers of files begin at 1.
            for index in [0, 2] {
                #expect(try await client.failure("aria2.changeUri", gid, index, none, [url("h")])?.code == 1)
            }
            // Unlike in aria2, a download has at least one URL.
            #expect(try await client.failure("aria2.changeUri", gid, 1, [url("g")], none)?.code == 1)
            #expect(try await client.result("aria2.getUris", gid).elements?.count == 1)
        }
    }

    @Test("The position in changeUri is one among the waiting URLs, so the URL in use stays the first")
    func changeURIOfActive() async throws {
        try await Self.run { client, _, origin in
            let (used, other) = (Self.stalled("a.bin", origin), Self.stalled("b.bin", origin))
            let gid = try #require(try await client.result("aria2.addUri", [used, other], ["split": "1"]).text)
            _ = try await client.status(of: gid) { $0["completedLength"]?.integer ?? 0 >= 1 << 20 }
            #expect(try await client.usedURIs(of: gid) == [used])
            let added = Self.stalled("c.bin", origin)
            let counts = try await client.result("aria2.changeUri", gid, 1, [String](), [added], 0)
            #expect(counts == JSON.array([.number(0), .number(1)]))
            let uris = try await client.result("aria2.getUris", gid).elements ?? []
            #expect(uris.compactMap { $0["uri"]?.text } == [used, added, other])
            #expect(uris.compactMap { $0["status"]?.text } == ["used", "waiting", "waiting"])
        }
    }

    @Test("A running download whose URL changeUri replaces ends with the file of the new URL")
    func replacedURI() async throws {
        try await Self.run { client, service, origin in
            let old = Self.stalled("a.bin", origin)
            let gid = try await client.add(old, ["split": "1", "out": "f.bin"])
            _ = try await client.status(of: gid) { $0["completedLength"]?.integer ?? 0 >= 1 << 20 }
            // From now on the old URL would complete, too.
            _ = origin.plainURL("/64M/a.bin")
            let new = origin.plainURL("/64M/b.bin?seed=2")
            let counts = try await client.result("aria2.changeUri", gid, 1, [old], [new])
            #expect(counts == JSON.array([.number(1), .number(1)]))
            #expect(try await service.run("wait", gid).status == 0)
            let path = service.command.path("files/f.bin")
            #expect(OriginContent(seed: 2).firstMismatch(inFileAt: path, length: 64 << 20) == nil)
            let file = try await client.result("aria2.getFiles", gid).elements?.first
            #expect(file?["uris"]?.elements?.compactMap { $0["uri"]?.text } == [new])
        }
    }

    // MARK: Options

    @Test("A running download that gets a wrong checksum with changeOption ends with an error, not as complete")
    func changedChecksum() async throws {
        try await Self.run { client, service, origin in
            let gid = try await client.add(Self.stalled("a.bin", origin), ["split": "1", "out": "f.bin"])
            _ = try await client.status(of: gid) { $0["completedLength"]?.integer ?? 0 >= 1 << 20 }
            _ = origin.plainURL("/64M/a.bin")
            let checksum = "sha-256=" + String(repeating: "0", count: 64)
            let change = ["checksum": checksum]
            #expect(try await client.result("aria2.changeOption", gid, change) == JSON.string("OK"))
            #expect(try await client.result("aria2.getOption", gid)["checksum"] == JSON.string(checksum))
            #expect(try await service.run("wait", gid).status == 9)
            let status = try await client.result("aria2.tellStatus", gid)
            #expect(status["status"] == JSON.string("error") && status["errorCode"] == JSON.string("32"))
            #expect(!service.command.exists("files/f.bin"))
        }
    }

    @Test("A field that changeOption adds to a running download is sent before it completes")
    func changedField() async throws {
        try await Self.run { client, service, origin in
            let gid = try await client.add(Self.stalled("a.bin", origin), ["split": "1"])
            _ = try await client.status(of: gid) { $0["completedLength"]?.integer ?? 0 >= 1 << 20 }
            _ = origin.plainURL("/64M/a.bin")
            let change = ["header": ["X-One: 1"]]
            #expect(try await client.result("aria2.changeOption", gid, change) == JSON.string("OK"))
            #expect(try await service.run("wait", gid).status == 0)
            #expect(origin.log.snapshot(path: "/64M/a.bin").requests.last?["x-one"] == "1")
        }
    }

    @Test("getOption returns the options that were set, and changeOption changes those of a download")
    func option() async throws {
        try await Self.run { client, service, origin in
            let gid = try await client.add(
                origin.url("/1M/a.bin"),
                ["pause": "true", "out": "a.bin", "split": "2", "max-download-limit": "10K", "user-agent": "test"])
            let options = try await client.result("aria2.getOption", gid)
            for (name, value) in options.members ?? [:] { #expect(value.text != nil, "\(name) is \(value)") }
            #expect(options["split"] == JSON.string("2") && options["out"] == JSON.string("a.bin"))
            #expect(options["max-download-limit"] == JSON.string("10240"))
            #expect(options["dir"] == JSON.string(service.command.path("files")))
            // Unlike in aria2, fields are not shown, because they may be secret.
            #expect(options["user-agent"] == nil)
            // "Does not return options which have no default value and have not been set."
            #expect(options["checksum"] == nil && options["http-user"] == nil && options["header"] == nil)

            let ok = JSON.string("OK")
            let changes = ["max-download-limit": "0", "split": "4"]
            #expect(try await client.result("aria2.changeOption", gid, changes) == ok)
            let changed = try await client.result("aria2.getOption", gid)
            #expect(changed["max-download-limit"] == JSON.string("0") && changed["split"] == JSON.string("4"))
            // What does not apply is ignored. What front-ends send back unchanged is no change.
            #expect(try await client.result("aria2.changeOption", gid, ["bt-max-peers": "7"]) == ok)
            let same = changed.members?.compactMapValues(\.text) ?? [:]
            #expect(try await client.result("aria2.changeOption", gid, same) == ok)
            #expect(try await client.failure("aria2.changeOption", gid, ["split": "many"])?.code == 1)
            #expect(try await client.failure("aria2.changeOption", gid)?.code == 1)

            #expect(try await client.result("aria2.unpause", gid) == JSON.string(gid))
            #expect(try await service.run("wait", gid).status == 0)
            #expect(try await client.result("aria2.getOption", gid)["out"] == JSON.string("a.bin"))
            #expect(try await client.failure("aria2.changeOption", gid, ["split": "1"])?.code == 1)
        }
    }

    @Test("changeOption also changes where a download goes that has not begun, and what becomes of an existing file")
    func placement() async throws {
        try await Self.run { client, service, origin in
            let gid = try await client.add(origin.url("/1M/a.bin"), ["pause": "true", "out": "a.bin"])
            let directory = service.command.path("files/sub")
            for (name, value) in [
                ("conditional-get", "true"), ("allow-overwrite", "true"), ("out", "b.bin"), ("dir", directory),
            ] {
                let failure = try await client.failure("aria2.changeOption", gid, [name: value])
                #expect(failure == nil, "\(name)")
                #expect(try await client.result("aria2.getOption", gid)[name] == JSON.string(value))
            }
            _ = try await client.result("aria2.unpause", gid)
            #expect(try await service.run("wait", gid).status == 0)
            #expect(service.command.exists("files/sub/b.bin"))
            // Not out of the directories in which clients may save files.
            let other = try await client.add(origin.url("/1M/c.bin"), ["pause": "true"])
            #expect(try await client.failure("aria2.changeOption", other, ["dir": "/etc"])?.code == 1)
        }
    }

    @Test("getGlobalOption has the keys of getOption, and changeGlobalOption changes the service's limits at once")
    func globalOption() async throws {
        try await Self.run { client, _, origin in
            let plain = try await client.add(origin.url("/1M/a.bin"), ["pause": "true"])
            let global = try await client.result("aria2.getGlobalOption")
            for (name, value) in global.members ?? [:] { #expect(value.text != nil, "\(name) is \(value)") }
            let keys = try await client.result("aria2.getOption", plain).keys
            #expect(keys.subtracting(global.keys).isEmpty)

            let ok = JSON.string("OK")
            let limits = ["max-concurrent-downloads": "1", "max-overall-download-limit": "1G"]
            #expect(try await client.result("aria2.changeGlobalOption", limits) == ok)
            let changed = try await client.result("aria2.getGlobalOption")
            #expect(changed["max-concurrent-downloads"] == JSON.string("1"))
            #expect(changed["max-overall-download-limit"] == JSON.string("1073741824"))
            let one = try await client.add(Self.stalled("b.bin", origin))
            let two = try await client.add(Self.stalled("c.bin", origin))
            _ = try await client.status(of: one) { $0["status"]?.text == "active" }
            #expect(try await client.waiting() == [plain, two])
            let more = ["max-concurrent-downloads": "2", "max-overall-download-limit": "0"]
            #expect(try await client.result("aria2.changeGlobalOption", more) == ok)
            _ = try await client.status(of: two) { $0["status"]?.text == "active" }
            let last = try await client.result("aria2.getGlobalOption")
            #expect(last["max-overall-download-limit"] == JSON.string("0"))

            // What does not apply is ignored. Unlike in aria2, defaults of downloads and logs are not changed.
            #expect(try await client.result("aria2.changeGlobalOption", ["bt-max-open-files": "7"]) == ok)
            for name in ["split", "dir", "log"] {
                let failure = try await client.failure("aria2.changeGlobalOption", [name: "3"])
                #expect(failure?.code == 1 && failure?.message.contains(name) == true, "\(name)")
            }
        }
    }

    // MARK: The results and the session

    @Test("getGlobalStat counts the downloads, and purgeDownloadResult and removeDownloadResult remove stopped ones")
    func results() async throws {
        try await Self.run(["-j", "1"]) { client, service, origin in
            /// Active, waiting and stopped.
            func counts() async throws -> [String?] {
                let stat = try await client.result("aria2.getGlobalStat")
                let keys = [
                    "downloadSpeed", "uploadSpeed", "numActive", "numWaiting", "numStopped", "numStoppedTotal",
                ]
                #expect(stat.keys == Set(keys))
                for key in keys { #expect(stat[key]?.integer != nil, "\(key)") }
                return ["numActive", "numWaiting", "numStopped"].map { stat[$0]?.text }
            }
            #expect(try await counts() == ["0", "0", "0"])
            var stopped: [String] = []
            for query in ["a.bin", "b.bin?fail=404:all", "c.bin", "d.bin?fail=404:all"] {
                let gid = try await client.add(origin.url("/1M/\(query)"))
                _ = try await service.run("wait", gid)
                stopped.append(gid)
            }
            let active = try await client.add(Self.stalled("e.bin", origin))
            let waiting = try await client.add(Self.stalled("f.bin", origin))
            let removed = try await client.add(origin.url("/1M/g.bin"), ["pause": "true"])
            _ = try await client.status(of: active) { $0["status"]?.text == "active" }
            #expect(try await counts() == ["1", "2", "4"])
            stopped.append(removed)
            _ = try await client.result("aria2.remove", removed)
            #expect(try await counts() == ["1", "1", "5"])

            for gid in [active, waiting] {
                #expect(try await client.failure("aria2.removeDownloadResult", gid)?.code == 1)
            }
            // A completed and a failed one.
            for gid in stopped.prefix(2) {
                #expect(try await client.result("aria2.removeDownloadResult", gid) == JSON.string("OK"))
                #expect(try await client.failure("aria2.tellStatus", gid)?.message == "GID \(gid) is not found")
                #expect(try await client.failure("aria2.removeDownloadResult", gid)?.code == 1)
            }
            #expect(try await counts() == ["1", "1", "3"])
            #expect(try await client.result("aria2.purgeDownloadResult") == JSON.string("OK"))
            #expect(try await counts() == ["1", "1", "0"])
            for gid in stopped { #expect(try await client.failure("aria2.tellStatus", gid)?.code == 1) }
            #expect(try await client.result("aria2.tellStopped", 0, 10) == JSON.array([]))
            // A file stays.
            #expect(service.command.exists("files/a.bin"))
        }
    }

    @Test("Each run has a session ID of its own, keeps its queue and history, and ends with shutdown or forceShutdown")
    func session() async throws {
        try await withCommand { command in
            try await withOrigin { origin in
                let options = ["-d", command.path("files"), "--rpc-listen", "127.0.0.1:0", "--rpc-allow-private"]
                let sessions = Mutex<Set<String>>([])
                let waiting = Mutex<[String]>([])
                for (number, method) in ["aria2.shutdown", "aria2.forceShutdown"].enumerated() {
                    let ending = try await Service.run(command, options, stopping: false) { service in
                        let client = try RPCClient(of: service)
                        let version = try await client.result("aria2.getVersion")
                        #expect(version["version"]?.text?.isEmpty == false)
                        #expect(version["enabledFeatures"]?.elements?.allSatisfy { $0.text != nil } == true)
                        let info = try await client.result("aria2.getSessionInfo")
                        #expect(info.keys == ["sessionId"])
                        #expect(try await client.result("aria2.getSessionInfo") == info)
                        let session = try #require(info["sessionId"]?.text)
                        let isNew = sessions.withLock { $0.insert(session).inserted }
                        #expect(isNew)
                        // Unlike in aria2, those of earlier sessions count, as many as tellStopped lists.
                        let before = try await client.result("aria2.getGlobalStat")["numStopped"]
                        #expect(before == JSON.string("\(number)"))
                        let gid = try await client.add(origin.url("/1M/\(method).bin"))
                        #expect(try await service.run("wait", gid).status == 0)
                        let after = try await client.result("aria2.getGlobalStat")["numStopped"]
                        #expect(after == JSON.string("\(number + 1)"))
                        let kept = waiting.withLock { $0 }
                        #expect(try await client.waiting() == kept)
                        let paused = try await client.add(origin.url("/1M/a.bin"), ["pause": "true"])
                        waiting.withLock { $0.append(paused) }
                        #expect(try await client.result("aria2.saveSession") == JSON.string("OK"))
                        #expect(try await client.result(method) == JSON.string("OK"))
                    }
                    #expect(ending.status == 0, "\(method): \(ending.errors)")
                }
            }
        }
    }

    // MARK: Messages

    private static func text(_ object: Any) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
    }

    @Test("multicall returns each result in an array of one and each fault as a struct, and a batch has its responses")
    func multicall() async throws {
        try await Self.run { client, _, origin in
            let token = "token:\(client.secret)"
            let (url, pause) = (origin.url("/1M/a.bin"), ["pause": "true"])
            let calls: [[String: Any]] = [
                ["methodName": "aria2.addUri", "params": [token, [url], pause] as [Any]],
                ["methodName": "aria2.tellStatus", "params": [token, Self.unknownGID]],
                ["methodName": "aria2.addTorrent", "params": [token, "ZGU="]],
                ["methodName": "system.listNotifications"],
                ["methodName": "system.multicall", "params": [[String]()]],
                // Each call has a token. The multicall has none.
                ["methodName": "aria2.getVersion", "params": [String]()],
            ]
            let message: [String: Any] = [
                "jsonrpc": "2.0", "id": "qwer", "method": "system.multicall", "params": [calls],
            ]
            let response = try await client.response(to: try Self.text(message))
            let results = try #require(response["result"]?.elements, "\(response)")
            try #require(results.count == calls.count)
            #expect(results[0].elements?.count == 1 && results[0].texts.first?.count == 16)
            #expect(results[3].elements?.first?.texts.sorted() == Self.notifications.sorted())
            for (index, text) in [
                (1, "GID \(Self.unknownGID) is not found"), (2, "BitTorrent is not supported"),
                (4, "Recursive system.multicall forbidden."), (5, "Unauthorized"),
            ] {
                #expect(results[index] == JSON.object(["code": .number(1), "message": .string(text)]))
            }

            let batch: [[String: Any]] = [
                ["jsonrpc": "2.0", "id": "qwer", "method": "aria2.addUri", "params": [token, [url], pause] as [Any]],
                ["jsonrpc": "2.0", "id": 7, "method": "aria2.addTorrent", "params": [token, "ZGU="]],
                ["jsonrpc": "2.0", "id": "asdf", "method": "system.listNotifications"],
            ]
            let responses = try #require(try await client.response(to: try Self.text(batch)).elements)
            #expect(responses.compactMap { $0["id"] } == [JSON.string("qwer"), JSON.number(7), JSON.string("asdf")])
            #expect(responses.first?["result"]?.text?.count == 16)
            #expect(RPCClient.failure(in: responses[1])?.code == 1)
            #expect(responses.allSatisfy { $0["jsonrpc"] == JSON.string("2.0") })
            #expect(try await client.waiting().count == 2)
        }
    }

    @Test("A response has the call's id, and a call that is unknown, malformed or unauthorised has an error code")
    func errors() async throws {
        try await Self.run { client, _, _ in
            let token = #"["token:\#(client.secret)"]"#
            let cases: [(message: String, id: JSON, code: Double?)] = [
                (#"{"jsonrpc":"2.0","id":"a","method":"aria2.getVersion","params":\#(token)}"#, .string("a"), nil),
                (#"{"jsonrpc":"2.0","id":7,"method":"aria2.getVersion","params":\#(token)}"#, .number(7), nil),
                (#"{"jsonrpc":"2.0","id":null,"method":"aria2.getVersion","params":\#(token)}"#, .null, nil),
                // aria2's number for an unknown method is not that of JSON-RPC 2.0.
                (#"{"jsonrpc":"2.0","id":"a","method":"aria2.other","params":\#(token)}"#, .string("a"), 1),
                (#"{"jsonrpc":"2.0","id":"a","method":"aria2.getVersion"}"#, .string("a"), 1),
                (#"{"jsonrpc":"2.0","id":"a","method":"aria2.getVersion","params":["token:"]}"#, .string("a"), 1),
                (#"{"jsonrpc":"2.0","id":"a","method":"aria2.getVersion","params":{}}"#, .string("a"), -32602),
                (#"{"jsonrpc":"2.0","id":"a","params":\#(token)}"#, .string("a"), -32600),
                // "Does not support notifications over HTTP."
                (#"{"jsonrpc":"2.0","method":"aria2.getVersion","params":\#(token)}"#, .null, -32600),
                (#"{"jsonrpc":"2.0","id":"a","method":"#, .null, -32700),
            ]
            for (message, id, code) in cases {
                let response = try await client.response(to: message)
                #expect(response["jsonrpc"] == JSON.string("2.0") && response["id"] == id, "\(message): \(response)")
                #expect(response["error"]?["code"]?.double == code, "\(message): \(response)")
                #expect((response["error"]?["message"]?.text == nil) == (code == nil))
                #expect((response["result"] == nil) == (code != nil))
            }
            let other = try await client.failure("aria2.other")
            #expect(other == RPCClient.Failure(code: 1, message: "No such method: aria2.other"))
            // Unlike in aria2, there is neither XML-RPC nor JSON-RPC with GET.
            #expect(try await client.send("GET", "/jsonrpc?method=system.listMethods&id=a").status == 404)
            #expect(try await client.send("POST", "/rpc", "<methodCall/>", type: "text/xml").status != 200)
        }
    }

    // MARK: WebSocket

    @Test("A WebSocket has the responses of its calls, and the notifications of all downloads")
    func notifications() async throws {
        try await Self.run { client, service, origin in
            try await WebSocket.run(port: client.port) { socket in
                let session = try await client.result("aria2.getSessionInfo")
                try await socket.post(try client.message(of: "aria2.getSessionInfo", []))
                let response = try await socket.next()
                #expect(response["result"] == session && response["id"] == JSON.string("1"), "\(response)")

                func next(_ name: String, _ gid: String) async throws {
                    let message = try await socket.next()
                    // A notification has no id.
                    let expected = JSON.object([
                        "jsonrpc": .string("2.0"), "method": .string("aria2.onDownload\(name)"),
                        "params": .array([.object(["gid": .string(gid)])]),
                    ])
                    #expect(message == expected)
                }
                let gid = try await client.add(Self.stalled("a.bin", origin))
                try await next("Start", gid)
                _ = try await client.result("aria2.pause", gid)
                try await next("Pause", gid)
                _ = origin.plainURL("/64M/a.bin")
                _ = try await client.result("aria2.unpause", gid)
                try await next("Start", gid)
                try await next("Complete", gid)

                let removed = try await client.add(Self.stalled("b.bin", origin))
                try await next("Start", removed)
                _ = try await client.result("aria2.remove", removed)
                try await next("Stop", removed)

                // Last, because the number of notifications is compared too.
                let failed = try await client.add(origin.url("/1M/c.bin?fail=404:all"))
                _ = try await service.run("wait", failed)
                var names: [String] = []
                repeat {
                    let message = try await socket.next()
                    #expect(message["params"]?.elements?.first?["gid"] == JSON.string(failed))
                    names.append(try #require(message["method"]?.text))
                } while names.last != "aria2.onDownloadError"
                #expect(names == ["aria2.onDownloadStart", "aria2.onDownloadError"])
            }
        }
    }
}

/// The same calls to the real aria2c.
@Suite("aria2's RPC by aria2c") struct Aria2ComparisonTests {
    /// A call and its answer.
    private struct Step: Sendable {
        let name: String
        let status: Int?
        /// The response, as JSON.
        let text: String
    }

    /// The calls of one client, with files of 1 MiB and one that stalls.
    private struct Script {
        let client: RPCClient
        let origin: Origin
        private(set) var steps: [Step] = []

        init(_ client: RPCClient, _ origin: Origin) {
            self.client = client
            self.origin = origin
        }

        /// Sends a message, and records its answer.
        @discardableResult
        private mutating func post(_ name: String, _ message: String) async throws -> JSON {
            let answer = try await self.client.send("POST", "/jsonrpc", message)
            self.steps.append(Step(name: name, status: answer.status, text: RPCClient.body(of: answer.text)))
            return try JSON(RPCClient.body(of: answer.text))
        }

        @discardableResult
        private mutating func call(_ name: String, _ method: String, _ parameters: Any...) async throws -> JSON {
            try await self.post(name, try self.client.message(of: method, parameters))
        }

        mutating func run() async throws {
            let (url, mirror) = (self.origin.url("/1M/a.bin"), self.origin.url("/1M/b.bin"))
            let options = ["pause": "true", "out": "a.bin"]
            let added = try await self.call("addUri", "aria2.addUri", [url, mirror], options)
            let gid = try #require(added["result"]?.text, "\(added)")
            let other = try await self.client.add(mirror, ["pause": "true", "out": "b.bin"])
            try await self.waiting(gid)
            try await self.active()
            try await self.call("unpause", "aria2.unpause", gid)
            _ = try await self.client.status(of: gid) { $0["status"]?.text == "complete" }
            try await self.stopped(gid, waiting: other)
            try await self.errors()
        }

        private mutating func waiting(_ gid: String) async throws {
            for method in ["tellStatus", "getUris", "getFiles", "getOption"] {
                try await self.call("\(method) of a paused download", "aria2.\(method)", gid)
            }
            for method in ["getGlobalStat", "getVersion", "getSessionInfo"] {
                try await self.call(method, "aria2.\(method)")
            }
            try await self.call("tellWaiting", "aria2.tellWaiting", 0, 10)
            try await self.call("tellWaiting from the end", "aria2.tellWaiting", -1, 10)
            try await self.call("changePosition", "aria2.changePosition", gid, 1, "POS_SET")
            try await self.call("a wrong POS", "aria2.changePosition", gid, 1, "POS_OTHER")
            try await self.call("changeUri", "aria2.changeUri", gid, 1, [String](), [self.origin.url("/1M/c.bin")])
            try await self.call("changeOption", "aria2.changeOption", gid, ["max-download-limit": "0"])
            try await self.call("getServers of a paused download", "aria2.getServers", gid)
            try await self.call("removeDownloadResult of a paused download", "aria2.removeDownloadResult", gid)
        }

        private mutating func active() async throws {
            let url = self.origin.url("/64M/d.bin?stall-after=4M:all")
            let gid = try await self.client.add(url, ["out": "d.bin", "split": "1"])
            _ = try await self.client.status(of: gid) { status in
                status["completedLength"]?.integer ?? 0 >= 1 << 20 && status["bitfield"] != nil
            }
            for method in ["tellStatus", "getUris", "getFiles", "getServers", "getPeers"] {
                try await self.call("\(method) of an active download", "aria2.\(method)", gid)
            }
            try await self.call("tellActive", "aria2.tellActive")
            try await self.call("unpause of an active download", "aria2.unpause", gid)
            try await self.call("pause", "aria2.pause", gid)
            _ = try await self.client.status(of: gid) { $0["connections"] == JSON.string("0") }
            try await self.call("tellStatus of a download that was active", "aria2.tellStatus", gid)
            try await self.call("pause of a paused download", "aria2.pause", gid)
            try await self.call("remove", "aria2.remove", gid)
        }

        private mutating func stopped(_ gid: String, waiting other: String) async throws {
            for method in [
                "tellStatus", "getFiles", "getOption", "getServers", "getPeers", "pause", "unpause", "remove",
            ] {
                try await self.call("\(method) of a complete download", "aria2.\(method)", gid)
            }
            try await self.call("changePosition of a complete download", "aria2.changePosition", gid, 0, "POS_SET")
            try await self.call("changeOption of a complete download", "aria2.changeOption", gid, ["split": "1"])
            try await self.call("tellStopped", "aria2.tellStopped", -1, 1)
            try await self.call("getGlobalStat at the end", "aria2.getGlobalStat")
            try await self.call("removeDownloadResult", "aria2.removeDownloadResult", gid)
            try await self.call("tellStatus of a removed result", "aria2.tellStatus", gid)
            try await self.call("pauseAll", "aria2.pauseAll")
            try await self.call("forceRemove", "aria2.forceRemove", other)
            try await self.call("purgeDownloadResult", "aria2.purgeDownloadResult")
        }

        private mutating func errors() async throws {
            try await self.call("an unknown GID", "aria2.tellStatus", "0000000000000000")
            try await self.call("an invalid GID", "aria2.tellStatus", "no digits")
            try await self.call("a missing parameter", "aria2.tellStatus")
            try await self.call("a parameter of another type", "aria2.tellStatus", 7)
            try await self.call("a negative number", "aria2.tellWaiting", 0, -1)
            try await self.call("an unknown method", "aria2.other")
            try await self.call("no URL", "aria2.addUri", [String]())
            try await self.call("no valid URL", "aria2.addUri", ["other"])
            try await self.call("no metalink", "aria2.addMetalink", "other")
            try await self.post("a wrong token", try self.client.message(of: "aria2.getVersion", [], secret: "wrong"))
            try await self.post("no token", #"{"jsonrpc":"2.0","id":"1","method":"aria2.getVersion"}"#)
            try await self.post("no id", #"{"jsonrpc":"2.0","method":"system.listMethods"}"#)
            try await self.post("no method", #"{"jsonrpc":"2.0","id":"1"}"#)
            try await self.post("no array", #"{"jsonrpc":"2.0","id":"1","method":"system.listMethods","params":{}}"#)
            try await self.post("no JSON", "{")
            try await self.post("listMethods", #"{"jsonrpc":"2.0","id":"1","method":"system.listMethods"}"#)
            try await self.post("listNotifications", #"{"jsonrpc":"2.0","id":"1","method":"system.listNotifications"}"#)
            let token = "token:\(self.client.secret)"
            let calls = #"[{"methodName":"aria2.getVersion","params":["\#(token)"]},{"methodName":"aria2.other"}]"#
            try await self.post(
                "multicall", #"{"jsonrpc":"2.0","id":"1","method":"system.multicall","params":[\#(calls)]}"#)
            try await self.post("a batch", #"[{"jsonrpc":"2.0","id":7,"method":"system.listMethods"}]"#)
        }
    }

    /// The options of aria2's `getOption` that this program does not answer.
    private static let optionsMissing: Set<String> = [
        // BitTorrent.
        "bt-enable-hook-after-hash-check", "bt-enable-lpd", "bt-force-encryption", "bt-hash-check-seed",
        "bt-load-saved-metadata", "bt-max-peers", "bt-metadata-only", "bt-min-crypto-level",
        "bt-remove-unselected-file", "bt-request-peer-speed-limit", "bt-require-crypto", "bt-save-metadata",
        "bt-seed-unverified", "bt-stop-timeout", "bt-tracker-connect-timeout", "bt-tracker-interval",
        "bt-tracker-timeout", "enable-peer-exchange", "follow-torrent", "max-upload-limit", "pause-metadata",
        "seed-ratio",
        // FTP and SFTP.
        "ftp-pasv", "ftp-reuse-connection", "ftp-type", "proxy-method",
        // Metalinks: a client adds the files of one, which are all fetched.
        "follow-metalink", "metalink-enable-unique-protocol", "metalink-preferred-protocol", "rpc-save-upload-metadata",
        // How aria2 works: its pieces, its memory, its control file, its choice of servers.
        "allow-piece-length-change", "always-resume", "async-dns", "check-integrity", "enable-http-keep-alive",
        "enable-http-pipelining", "enable-mmap", "force-save", "hash-check-only", "http-accept-gzip",
        "http-auth-challenge", "http-no-cache", "max-file-not-found", "max-mmap-limit", "max-resume-failure-tries",
        "no-file-allocation-limit", "parameterized-uri", "piece-length", "realtime-chunk-checksum",
        "remove-control-file", "reuse-uri", "save-not-found", "stream-piece-selector", "uri-selector", "use-head",
        "content-disposition-default-utf8", "dry-run",
        // Of the whole service, and not for clients to see or to change. Proxies are there if the environment has some.
        "connect-timeout", "no-netrc", "no-proxy", "all-proxy", "http-proxy", "https-proxy", "ftp-proxy",
        // Without a fixed default here: segdl chooses. They are there once they are set.
        "max-tries", "min-split-size", "retry-wait", "split", "user-agent",
    ]

    /// Notifications of BitTorrent.
    private static let notificationsMissing: Set<String> = ["aria2.onBtDownloadComplete"]

    @Test(
        "Answers have the keys and types of aria2c's, and errors its codes",
        .enabled(if: Aria2c.path != nil, "aria2 is not installed"))
    func comparison() async throws {
        try await RPCClient.run(["--rpc-allow-private"]) { client, service, origin in
            var script = Script(client, origin)
            try await script.run()
            let ours = script.steps
            let theirs = try await Aria2c.run(in: service.command) { client in
                var script = Script(client, origin)
                try await script.run()
                return script.steps
            }
            try #require(ours.map(\.name) == theirs.map(\.name))
            for (own, other) in zip(ours, theirs) {
                let differences = Self.differences(try JSON(own.text), try JSON(other.text), at: own.name)
                #expect(
                    differences.isEmpty,
                    "\(differences.joined(separator: "; ")): \(own.text) instead of \(other.text)")
                // The manual does not say which status an error has: aria2c answers 400 or 500, this service 200.
                if other.status == 200 { #expect(own.status == 200, "\(own.name)") }
            }
        }
    }

    /// What an answer of this service lacks, or has in another type than aria2's.
    private static func differences(_ own: JSON, _ other: JSON, at place: String) -> [String] {
        switch (own, other) {
        case (.object(let own), .object(let other)):
            return other.flatMap { key, value -> [String] in
                guard let found = own[key] else {
                    let isOption = place.hasPrefix("getOption") && Self.optionsMissing.contains(key)
                    return isOption ? [] : ["\(place): \(key) is missing"]
                }
                guard key != "code" else { return found == value ? [] : ["\(place): the code is \(found)"] }
                return Self.differences(found, value, at: "\(place): \(key)")
            }
        case (.array, .array) where place.hasPrefix("list") || place.hasPrefix("a batch: result"):
            let missing = Set(other.texts).subtracting(own.texts).subtracting(Self.notificationsMissing)
            return missing.map { "\(place): \($0) is missing" }
        case (.array(let own), .array(let other)):
            guard let first = other.first else { return own.isEmpty ? [] : ["\(place): not empty"] }
            guard !own.isEmpty else { return ["\(place): empty"] }
            // A tuple of different types, or a list of equal ones whose number may differ.
            guard own.count != other.count else {
                return zip(own, other).flatMap { Self.differences($0, $1, at: place) }
            }
            return own.flatMap { Self.differences($0, first, at: place) }
        case (.string(let own), .string(let other)):
            // A number in a text, unless it may be a GID, which has 16 digits, or a bit field.
            let isNumber = Int(other) != nil && other.count < 16 && !place.hasSuffix("bitfield")
            return isNumber && Int(own) == nil ? ["\(place): \(own) is no number"] : []
        case (.null, .null), (.bool, .bool), (.number, .number): return []
        case (.null, _), (.bool, _), (.number, _), (.string, _), (.array, _), (.object, _):
            return ["\(place): \(own) instead of \(other)"]
        }
    }
}

/// The real aria2c, run as a process.
private enum Aria2c {
    /// The program; nil if it is not installed.
    static let path = ["/usr/bin/aria2c", "/usr/local/bin/aria2c"]
        .first { FileManager.default.isExecutableFile(atPath: $0) }

    /// Runs `body` with a client of aria2c, which has a directory of its own, and ends it.
    static func run<Answer: Sendable>(
        in command: Segdl, _ body: @escaping @Sendable (RPCClient) async throws -> Answer
    ) async throws -> Answer {
        let client = RPCClient(port: try Nginx.freePorts(1)[0], secret: "a secret of the test")
        let arguments = [
            Self.path ?? "aria2c", "--enable-rpc", "--rpc-listen-port=\(client.port)", "--rpc-secret=\(client.secret)",
            "-d", command.path("aria2"), "--no-conf", "--no-netrc", "--no-proxy=127.0.0.1", "--quiet",
            "--stop-with-process=\(getpid())",
        ]
        let result = Mutex<Result<Answer, any Error>?>(nil)
        let outcome = try await Child.run(
            arguments, in: command.directory, log: command.path("aria2c"), environment: ["HOME": command.directory],
            deadline: .seconds(180),
            during: { child in
                // It has nothing to save.
                defer { child.signal(SIGKILL) }
                while !Task.isCancelled, (try? await client.result("aria2.getVersion")) == nil {
                    // Not a delay for correctness: it leaves the processor to aria2c.
                    try? await Task.sleep(for: .milliseconds(5))
                }
                do {
                    let answer = try await body(client)
                    result.withLock { $0 = .success(answer) }
                } catch {
                    result.withLock { $0 = .failure(error) }
                }
            })
        let answer = result.withLock { $0 }
        return try #require(answer, "\(outcome)").get()
    }
}

/// A WebSocket at `/jsonrpc`: as much of RFC 6455 as the service's messages need, which are not fragmented.
private struct WebSocket: Sendable {
    /// The service has closed the connection.
    private struct Closed: Error {}

    private let descriptor: CInt

    /// Runs `body` with a WebSocket, and closes it.
    static func run(port: Int, _ body: (WebSocket) async throws -> Void) async throws {
        let descriptor = try #require(RawConnection.open(port: port))
        defer { close(descriptor) }
        let request = """
            GET /jsonrpc HTTP/1.1\r
            Host: 127.0.0.1:\(port)\r
            Upgrade: websocket\r
            Connection: Upgrade\r
            Sec-WebSocket-Version: 13\r
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r
            \r

            """
        let head = try await aside {
            try Self.transmit(Array(request.utf8), on: descriptor)
            var head: [UInt8] = []
            while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) { head += try Self.receive(1, from: descriptor) }
            return String(decoding: head, as: UTF8.self)
        }
        // The answer to this key in RFC 6455 §1.3.
        try #require(head.hasPrefix("HTTP/1.1 101 ") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "\(head)")
        try await body(WebSocket(descriptor: descriptor))
    }

    /// Sends a text.
    func post(_ text: String) async throws {
        let bytes = Array(text.utf8)
        // The last fragment, a text. The mask is zero, so that it changes nothing.
        var frame: [UInt8] = [0x81]
        if bytes.count < 126 {
            frame.append(0x80 | UInt8(bytes.count))
        } else {
            frame += [0xFE, UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)]
        }
        frame += [0, 0, 0, 0] + bytes
        let descriptor = self.descriptor
        let message = frame
        try await aside { try Self.transmit(message, on: descriptor) }
    }

    /// The next text of the service. Pings are skipped.
    func next() async throws -> JSON {
        let descriptor = self.descriptor
        let text = try await aside {
            while true {
                let head = try Self.receive(2, from: descriptor)
                let length: Int =
                    switch head[1] {
                    case 126: try Self.receive(2, from: descriptor).reduce(0) { $0 << 8 | Int($1) }
                    case 127: try Self.receive(8, from: descriptor).reduce(0) { $0 << 8 | Int($1) }
                    default: Int(head[1])
                    }
                let bytes = try Self.receive(length, from: descriptor)
                switch head[0] {
                case 0x81: return String(decoding: bytes, as: UTF8.self)
                case 0x88: throw Closed()
                default: continue
                }
            }
        }
        return try JSON(text)
    }

    private static func transmit(_ bytes: [UInt8], on descriptor: CInt) throws {
        let count = bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
        guard count == bytes.count else { throw Closed() }
    }

    private static func receive(_ count: Int, from descriptor: CInt) throws -> [UInt8] {
        guard count > 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: count)
        guard recv(descriptor, &bytes, count, CInt(MSG_WAITALL)) == count else { throw Closed() }
        return bytes
    }
}

extension RPCClient {
    /// Adds a download, and returns its GID.
    fileprivate func add(_ url: String, _ options: [String: String] = [:]) async throws -> String {
        try #require(try await self.result("aria2.addUri", [url], options).text)
    }

    /// The GIDs of the waiting downloads, in their order.
    fileprivate func waiting() async throws -> [String] {
        try await self.result("aria2.tellWaiting", 0, 1000, ["gid"]).gids
    }

    fileprivate func state(of gid: String) async throws -> String? {
        try await self.result("aria2.tellStatus", gid, ["status"])["status"]?.text
    }

    /// The URLs of an active download that are in use, once there is one.
    fileprivate func usedURIs(of gid: String) async throws -> [String] {
        while true {
            let uris = try await self.result("aria2.getUris", gid).elements ?? []
            let used = uris.filter { $0["status"]?.text == "used" }.compactMap { $0["uri"]?.text }
            if !used.isEmpty { return used }
            // Not a delay for correctness: it leaves the processor to the service.
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// A download's status, once it is as awaited.
    fileprivate func status(of gid: String, _ isAwaited: (JSON) -> Bool) async throws -> JSON {
        while true {
            let status = try await self.result("aria2.tellStatus", gid)
            if isAwaited(status) { return status }
            // Not a delay for correctness: it leaves the processor to the service.
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}

extension JSON {
    /// The texts among an array's elements.
    fileprivate var texts: [String] { self.elements?.compactMap(\.text) ?? [] }
    /// The GIDs of an array's objects.
    fileprivate var gids: [String] { self.elements?.compactMap { $0["gid"]?.text } ?? [] }
    /// The names of an object's members.
    fileprivate var keys: Set<String> { Set(self.members.map { Array($0.keys) } ?? []) }
    /// The number in a text, which is aria2's form of numbers.
    fileprivate var integer: Int? { self.text.flatMap { Int($0) } }
}
