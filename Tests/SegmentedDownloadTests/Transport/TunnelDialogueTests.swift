import HTTPTypes
import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

/// What is said to proxies, byte for byte, and what answers mean: RFC 1928, RFC 1929, and the notes on SOCKS 4 and 4a.
@Suite("Dialogues with proxies")
struct TunnelDialogueTests {
    private static func goal(_ host: String = "h.example") -> TunnelGoal {
        TunnelGoal(name: "h.example", host: host, port: 443, usesTLS: true)
    }

    private static let name: [UInt8] = [3, 9] + Array("h.example".utf8)
    private static let port: [UInt8] = [1, 187]

    /// Says what it is told, and returns what the client has said.
    private static func talk(
        _ dialogue: some TunnelDialogue, _ answers: [[UInt8]]
    ) throws -> (said: [[UInt8]], isOpen: Bool) {
        var dialogue = dialogue
        var said = [try dialogue.begin()]
        for answer in answers {
            switch try dialogue.read(answer) {
            case .waiting: break
            case .sending(let bytes): said.append(bytes)
            case .open: return (said, true)
            }
        }
        return (said, false)
    }

    @Test("SOCKS 5 connects to a name or an address, with a password if it is asked for one")
    func socks5() throws {
        let reply: [UInt8] = [5, 0, 0, 1, 127, 0, 0, 1, 0, 80]
        let plain = try Self.talk(SOCKSDialogue(Proxy("socks5h://p:1"), to: Self.goal()), [[5, 0], reply])
        #expect(plain.said == [[5, 1, 0], [5, 1, 0] + Self.name + Self.port] && plain.isOpen)
        let proxy = try Proxy("socks5h://me:p%3Aw@p:1")
        let login = try Self.talk(SOCKSDialogue(proxy, to: Self.goal("1.2.3.4")), [[5, 2], [1, 0], reply])
        #expect(
            login.said == [
                [5, 2, 0, 2], [1, 2] + Array("me".utf8) + [3] + Array("p:w".utf8),
                [5, 1, 0, 1, 1, 2, 3, 4] + Self.port,
            ] && login.isOpen)
        let unasked = try Self.talk(SOCKSDialogue(proxy, to: Self.goal("::1")), [[5, 0], reply])
        #expect(unasked.said.last == [5, 1, 0, 4] + [UInt8](repeating: 0, count: 15) + [1] + Self.port)
    }

    @Test("Answers may arrive byte by byte, and have addresses of all kinds")
    func pieces() throws {
        for address: [UInt8] in [
            [1, 1, 2, 3, 4], [3, 2, 65, 66], [3, 0], [4] + [UInt8](repeating: 9, count: 16),
        ] {
            let bytes: [UInt8] = [5, 0] + [5, 0, 0] + address + [0, 80]
            let talk = try Self.talk(SOCKSDialogue(Proxy("socks5://p:1"), to: Self.goal()), bytes.map { [$0] })
            #expect(talk.isOpen && talk.said.count == 2)
        }
    }

    @Test("SOCKS 4 connects to an address, and 4a to a name, with the user's name")
    func socks4() throws {
        let reply: [UInt8] = [0, 90, 0, 0, 0, 0, 0, 0]
        let address = try Self.talk(SOCKSDialogue(Proxy("socks4://me@p:1"), to: Self.goal("1.2.3.4")), [reply])
        #expect(address.said == [[4, 1] + Self.port + [1, 2, 3, 4] + Array("me".utf8) + [0]] && address.isOpen)
        let name = try Self.talk(SOCKSDialogue(Proxy("socks4a://p:1"), to: Self.goal()), [reply])
        #expect(name.said == [[4, 1] + Self.port + [0, 0, 0, 1, 0] + Array("h.example".utf8) + [0]] && name.isOpen)
        #expect(throws: DownloadError.self) { try SOCKSDialogue(Proxy("socks4://p:1"), to: Self.goal("::1")).begin() }
    }

    @Test(
        "A SOCKS proxy's refusal says why, and whether it helps to try again",
        arguments: [
            ("socks5", [[5, 255]], "auth", false, "requires credentials"),
            ("socks5", [[5, 2]], "auth", false, "requires credentials"),
            ("socks5", [[5, 0], [5, 2, 0, 1, 0, 0, 0, 0, 0, 0]], "network", false, "rules"),
            ("socks5", [[5, 0], [5, 5, 0, 1, 0, 0, 0, 0, 0, 0]], "network", true, "refused"),
            ("socks5", [[5, 0], [5, 99, 0, 1, 0, 0, 0, 0, 0, 0]], "network", true, "did not connect"),
            ("socks5", [[72, 84]], "network", false, "does not speak SOCKS 5"),
            ("socks5", [[5, 0], [5, 0, 0, 7, 0, 0]], "network", false, "unknown kind"),
            ("socks5", [[5, 0], [5, 0, 0, 1, 0, 0, 0, 0, 0, 0, 7]], "network", false, "more than an answer"),
            ("socks5://u:p@", [[5, 255]], "auth", false, "accepts no password"),
            ("socks5://u:p@", [[5, 2], [1, 1]], "auth", false, "rejects"),
            ("socks4", [[0, 91, 0, 0, 0, 0, 0, 0]], "network", true, "did not connect"),
            ("socks4", [[0, 93, 0, 0, 0, 0, 0, 0]], "auth", false, "rejects"),
            ("socks4", [[72, 84, 84, 80, 0, 0, 0, 0]], "network", false, "does not speak SOCKS 4"),
        ] as [(String, [[UInt8]], String, Bool, String)])
    func refusals(proxy: String, answers: [[UInt8]], code: String, isTransient: Bool, words: String) throws {
        let proxy = try Proxy(proxy.contains("://") ? "\(proxy)p:1" : "\(proxy)://p:1")
        let error = #expect(throws: DownloadError.self) {
            try Self.talk(SOCKSDialogue(proxy, to: Self.goal("1.2.3.4")), answers)
        }
        #expect(error?.code.rawValue == code && error?.isTransient == isTransient, "\(String(describing: error))")
        #expect(error?.message.contains(words) == true && error?.message.contains("p:1") == true)
    }

    private static func connect(
        _ answer: String, piece: Int = .max, authorization: String? = nil
    ) throws -> (said: [[UInt8]], isOpen: Bool) {
        let bytes = Array(answer.utf8)
        let pieces = stride(from: 0, to: bytes.count, by: min(piece, bytes.count)).map {
            Array(bytes[$0..<min(bytes.count, $0 + min(piece, bytes.count))])
        }
        return try Self.talk(ConnectDialogue(Proxy("p:1"), to: Self.goal(), authorization: authorization), pieces)
    }

    @Test(
        "Any 2xx opens a tunnel, whatever its fields and line ends are",
        arguments: [
            "HTTP/1.1 200 Connection established\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "HTTP/1.0 200\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n\r\n", "HTTP/1.1 200 OK\n\n",
            "HTTP/1.1 200 OK\r\nFolded: a\r\n b\r\n\r\n",
        ], [1, 7, Int.max])
    func connects(answer: String, piece: Int) throws {
        let talk = try Self.connect(answer, piece: piece, authorization: "Basic x")
        #expect(talk.isOpen)
        let said = String(decoding: talk.said.joined(), as: UTF8.self)
        #expect(
            said.hasPrefix("CONNECT h.example:443 HTTP/1.1\r\nHost: h.example:443\r\n") && said.hasSuffix("\r\n\r\n"))
        #expect(said.contains("\r\nProxy-Authorization: Basic x\r\n"))
        #expect("\(Self.goal("::1"))" == "[::1]:443")
    }

    @Test(
        "What is no response, or has bytes behind its head, is an error",
        arguments: ["SSH-2.0-x\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n\u{16}"])
    func malformed(answer: String) {
        let error = #expect(throws: DownloadError.self) { try Self.connect(answer) }
        #expect(error?.code == .protocol)
    }

    @Test(
        "A refusal of CONNECT has the proxy's status, and is retried only if the status says so",
        arguments: [
            (403, "", "server", false, "answered 403"), (503, "Retry-After: 7\r\n", "server", true, "503"),
            (502, "", "server", true, "502"),
            (302, "Location: http://login.corp/\r\n", "server", false, "http://login.corp/"),
            (407, "Proxy-Authenticate: Basic realm=x\r\n", "auth", false, "requires credentials (Basic)"),
            (407, "Proxy-Authenticate: NTLM\r\n", "auth", false, "(NTLM)"),
        ])
    func refused(status: Int, field: String, code: String, isTransient: Bool, words: String) throws {
        let refusal = #expect(throws: ConnectDialogue.Refusal.self) {
            try Self.connect("HTTP/1.1 \(status) No\r\n\(field)Content-Length: 3\r\n\r\nbad", piece: 5)
        }
        let error = try #require(refusal).failure
        #expect(error.code.rawValue == code && error.isTransient == isTransient && error.status == status)
        #expect(error.message.contains(words) && error.message.hasPrefix("the proxy p:1"), "\(error)")
        #expect(error.retryAfter == (status == 503 ? .seconds(7) : nil))
    }
}
