import SegmentedDownloadCore
import Synchronization

/// A Digest challenge that this library can answer (RFC 7616): with MD5 or SHA-256, `-sess`, and the quality of protection `auth` or
/// none (RFC 2069).
struct DigestChallenge: Hashable, Sendable {
    let nonce: String
    /// Whether the nonce of the refused request was right but too old: then the password is not the reason.
    let isStale: Bool
    private let realm: String
    private let opaque: String?
    private let algorithm: ExpectedDigest.Algorithm
    /// The algorithm as the server wrote it; nil if it did not.
    private let algorithmName: String?
    private let isSession: Bool
    private let hasQuality: Bool
    private let hashesName: Bool

    /// - Returns: Nil for another scheme, a missing nonce, or an algorithm or quality that this library does not have.
    init?(_ challenge: AuthChallenge) {
        guard challenge.uses("Digest"), let nonce = challenge["nonce"] else { return nil }
        let name = challenge["algorithm"]?.lowercased() ?? "md5"
        switch name {
        case "md5", "md5-sess": self.algorithm = .md5
        case "sha-256", "sha-256-sess": self.algorithm = .sha256
        default: return nil
        }
        self.isSession = name.hasSuffix("sess")
        let qualities = challenge["qop"]?.split { $0 == "," || $0 == " " }.map { $0.lowercased() }
        guard qualities.map({ $0.isEmpty || $0.contains("auth") }) ?? true else { return nil }
        self.hasQuality = qualities?.isEmpty == false
        self.nonce = nonce
        self.realm = challenge["realm"] ?? ""
        self.opaque = challenge["opaque"]
        self.algorithmName = challenge["algorithm"]
        self.isStale = challenge["stale"]?.lowercased() == "true"
        self.hashesName = challenge["userhash"]?.lowercased() == "true"
    }

    /// The challenge to answer: one with SHA-256 before one with MD5 (RFC 7616 §3.7 lets the client choose).
    static func best(of challenges: [AuthChallenge]) -> DigestChallenge? {
        let known = challenges.compactMap { DigestChallenge($0) }
        return known.first { $0.algorithm == .sha256 } ?? known.first
    }

    /// The value of `Authorization` for one request.
    ///
    /// - Parameters:
    ///   - target: The target of the request, as it is sent.
    ///   - count: How many requests were sent with the nonce, this one included.
    ///   - clientNonce: The same for all requests with the nonce, because `-sess` needs that.
    func answer(
        user: String, password: String, method: String, target: String, count: UInt32, clientNonce: String
    ) -> String {
        var secret = self.hash("\(user):\(self.realm):\(password)")
        if self.isSession { secret = self.hash("\(secret):\(self.nonce):\(clientNonce)") }
        let request = self.hash("\(method):\(target)")
        let number = Self.eightDigits(count)
        let middle = self.hasQuality ? "\(self.nonce):\(number):\(clientNonce):auth" : self.nonce
        let name = self.hashesName ? self.hash("\(user):\(self.realm)") : user
        var parts = [
            "username=\(Self.quoted(name))", "realm=\(Self.quoted(self.realm))", "nonce=\(Self.quoted(self.nonce))",
            "uri=\(Self.quoted(target))", "response=\"\(self.hash("\(secret):\(middle):\(request)"))\"",
        ]
        if let algorithmName { parts.append("algorithm=\(algorithmName)") }
        if let opaque { parts.append("opaque=\(Self.quoted(opaque))") }
        if self.hasQuality || self.isSession { parts.append("cnonce=\"\(clientNonce)\"") }
        if self.hasQuality { parts += ["qop=auth", "nc=\(number)"] }
        if self.hashesName { parts.append("userhash=true") }
        return "Digest \(parts.joined(separator: ", "))"
    }

    private func hash(_ text: String) -> String {
        var digest = RunningDigest(self.algorithm)
        var text = text
        text.withUTF8 { digest.update(UnsafeRawBufferPointer($0)) }
        return digest.hex
    }

    private static func quoted(_ text: String) -> String {
        "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
    }

    private static func eightDigits(_ number: UInt32) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}

/// The answers to one Digest challenge. Many requests use one nonce, each with the next count.
final class DigestLogin: Sendable {
    let challenge: DigestChallenge
    private let clientNonce: String
    private let count = Atomic<UInt32>(0)

    init(_ challenge: DigestChallenge) {
        self.challenge = challenge
        self.clientNonce = (0..<2).map { _ in String(UInt64.random(in: (1 << 60)...UInt64.max), radix: 16) }.joined()
    }

    /// The value of `Authorization` for the next request.
    func answer(user: String, password: String, method: String, target: String) -> String {
        let count = self.count.wrappingAdd(1, ordering: .relaxed).newValue
        return self.challenge.answer(
            user: user, password: password, method: method, target: target, count: count, clientNonce: self.clientNonce)
    }
}

/// The servers that want Digest logins, with the last challenge of each.
final class DigestLogins: Sendable {
    /// 1,000: a service that has logged in to more servers begins anew.
    private static let serversMax = 1000

    private let logins = Mutex<[String: DigestLogin]>([:])

    /// The login of a server, which has any text as its name.
    subscript(server: String) -> DigestLogin? { self.logins.withLock { $0[server] } }

    /// The login to try after a refusal, for this request and those that follow.
    ///
    /// - Parameter sent: What the refused request was sent with: a `Digest` value, another one, or none.
    /// - Returns: Nil if there is no challenge to answer, or if it was answered with the right nonce: then name or password is wrong.
    func begin(_ challenges: [AuthChallenge], by server: String, after sent: String?) -> DigestLogin? {
        guard let challenge = DigestChallenge.best(of: challenges) else { return nil }
        let answered = AuthChallenge.all(in: [sent ?? ""]).first { $0.uses("Digest") }?["nonce"]
        guard challenge.isStale || challenge.nonce != answered else { return nil }
        let login = DigestLogin(challenge)
        self.logins.withLock { logins in
            if logins.count >= Self.serversMax { logins = [:] }
            logins[server] = login
        }
        return login
    }
}
