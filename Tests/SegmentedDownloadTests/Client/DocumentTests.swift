import Foundation
import HTTPTypes
import Origin
import SegmentedDownloadCore
import TestSupport
import Testing

@testable import SegmentedDownload

/// Short documents, such as lists, which are verified against what the server states of them.
@Suite("Documents")
struct DocumentTests {
    private static let text = "<a href=\"a.bin\">a.bin</a>"

    private static func digest(_ algorithm: ExpectedDigest.Algorithm, of text: String) -> RunningDigest {
        var digest = RunningDigest(algorithm)
        Array(text.utf8).withUnsafeBytes { digest.update($0) }
        return digest
    }

    private static func base64(_ algorithm: ExpectedDigest.Algorithm, of text: String) -> String {
        Data(Self.digest(algorithm, of: text).bytes).base64EncodedString()
    }

    private static func sha256(_ text: String) -> String { "sha-256=:\(Self.base64(.sha256, of: text)):" }

    /// The code of fetching a document from a transport in memory; nil if it arrives.
    private static func code(_ fields: HTTPFields) async throws -> (code: DownloadError.Code?, message: String) {
        let request = DownloadRequest(try SourceURL("https://example.org/list"))
        var configuration = DownloadConfiguration()
        configuration.transport = InMemoryTransport([
            request.source: InMemoryTransport.File(Array(Self.text.utf8), fields: fields)
        ])
        return try await withDownloadClient(configuration) { client in
            do throws(DownloadError) {
                let text = try await client.text(of: request)
                #expect(text == Self.text)
                return (nil, "")
            } catch {
                return (error.code, error.message)
            }
        }
    }

    @Test("A document that does not have a digest of its head is refused, and the message has both values")
    func head() async throws {
        let fields: [(String, @Sendable (String) -> String)] = [
            ("Content-Digest", { Self.sha256($0) }), ("Repr-Digest", { Self.sha256($0) }),
            ("Digest", { "SHA-256=\(Self.base64(.sha256, of: $0))" }),
            ("Content-MD5", { Self.base64(.md5, of: $0) }),
        ]
        for (text, value) in fields {
            let name = try #require(HTTPField.Name(text))
            let right = try await Self.code([name: value(Self.text)])
            #expect(right.code == nil, "\(name): \(right.message)")
            let wrong = try await Self.code([name: value("other")])
            #expect(wrong.code == .integrity, "\(name)")
            let algorithm = text == "Content-MD5" ? ExpectedDigest.Algorithm.md5 : .sha256
            for content in [Self.text, "other"] {
                let hex = Self.digest(algorithm, of: content).hex
                #expect(wrong.message.contains(hex), "\(wrong.message)")
            }
        }
        // One that is right does not excuse another.
        var both = HTTPFields()
        both[try #require(HTTPField.Name("Repr-Digest"))] = Self.sha256(Self.text)
        both[try #require(HTTPField.Name("Content-Digest"))] = Self.sha256("other")
        let contradicted = try await Self.code(both)
        #expect(contradicted.code == .integrity)
        let unstated = try await Self.code([:])
        #expect(unstated.code == nil)
    }

    @Test("A document that the server encodes although nobody asked is decoded, and verified as it was sent")
    func encoded() async throws {
        let gzip = try #require(
            Data(base64Encoded: "H4sIAAAAAAACA7NJVMgoSk2zVUrUS8rMU7IDUzb6iXYAUrOiyxkAAAA="))
        let request = DownloadRequest(try SourceURL("https://example.org/list"))
        let name = try #require(HTTPField.Name("Digest"))
        for (bytes, expected) in [(Array(gzip), Self.text), (Array(gzip.dropLast()), nil)] as [([UInt8], String?)] {
            var configuration = DownloadConfiguration()
            let digest = "md5=" + Data(Self.md5(of: bytes)).base64EncodedString()
            let fields: HTTPFields = [.contentEncoding: "gzip", name: digest]
            configuration.transport = InMemoryTransport([request.source: .init(bytes, fields: fields)])
            let (text, code) = try await withDownloadClient(configuration) { client -> (String?, DownloadError.Code?) in
                do throws(DownloadError) {
                    return (try await client.text(of: request), nil)
                } catch {
                    return (nil, error.code)
                }
            }
            #expect(text == expected && code == (expected == nil ? .protocol : nil))
        }
    }

    private static func md5(of bytes: [UInt8]) -> [UInt8] {
        var digest = RunningDigest(.md5)
        bytes.withUnsafeBytes { digest.update($0) }
        return Array(digest.bytes)
    }

    /// What a server sends, and the code of fetching it as a document; nil if it arrives.
    private static func code(ofRaw raw: String) async throws -> DownloadError.Code? {
        try await Harness.run { harness -> DownloadError.Code? in
            let encoded = raw.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
            let request = try harness.request("/1K/list?raw=\(encoded)")
            return try await withDownloadClient { client -> DownloadError.Code? in
                do throws(DownloadError) {
                    _ = try await client.bytes(of: request)
                    return nil
                } catch {
                    return error.code
                }
            }
        }
    }

    @Test("A document that was cut where only the end of the connection marks its end is refused for its digest")
    func cut() async throws {
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n"
        let digest = "Content-Digest: \(Self.sha256(Self.text))\r\n"
        let cut = String(Self.text.dropLast())
        let whole = try await Self.code(ofRaw: "\(head)\(digest)\r\n\(Self.text)")
        #expect(whole == nil)
        let refused = try await Self.code(ofRaw: "\(head)\(digest)\r\n\(cut)")
        #expect(refused == .integrity)
        // Without a digest nothing shows that it was cut.
        let accepted = try await Self.code(ofRaw: "\(head)\r\n\(cut)")
        #expect(accepted == nil)
    }

    @Test("A document is verified against the digests behind it", arguments: ["Repr-Digest", "Content-Digest"])
    func trailers(name: String) async throws {
        for (text, code) in [(Self.text, nil), ("other", .integrity)] as [(String, DownloadError.Code?)] {
            let length = String(Self.text.utf8.count, radix: 16)
            let raw =
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(length)\r\n\(Self.text)\r\n0\r\n"
                + "\(name): \(Self.sha256(text))\r\n\r\n"
            let found = try await Self.code(ofRaw: raw)
            #expect(found == code)
        }
    }
}
