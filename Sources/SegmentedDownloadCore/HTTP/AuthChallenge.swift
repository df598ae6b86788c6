import HTTPTypes

/// A challenge of `WWW-Authenticate` or `Proxy-Authenticate` (RFC 9110 §11.6.1): how a server wants a client to log in.
package struct AuthChallenge: Hashable, Sendable {
    /// The name of the scheme, as written.
    package let scheme: String
    /// By name in lower case. Of two with the same name, the first counts.
    private var parameters: [String: String] = [:]

    /// 16 challenges of 16 parameters: servers send one or two, of at most ten.
    private static let challengesMax = 16
    private static let parametersMax = 16

    package subscript(name: String) -> String? { self.parameters[name] }

    package func uses(_ scheme: String) -> Bool { self.scheme.asciiLowercased == scheme.asciiLowercased }

    /// The challenges of all lines of a field. One line may have several, and a comma is between both challenges and parameters: what
    /// has an equals sign behind it is a parameter of the challenge before. What cannot be read is skipped.
    package static func all(in values: [String]) -> [AuthChallenge] {
        var challenges: [AuthChallenge] = []
        for value in values { Self.read(value, &challenges) }
        return challenges
    }

    private static func read(_ value: String, _ challenges: inout [AuthChallenge]) {
        var reader = FieldValueReader(value)
        // A parameter belongs to a challenge of the same line.
        var isWithin = false
        while true {
            _ = reader.take { $0 == UInt8(ascii: ",") || $0.isFieldWhitespace }
            let start = reader
            guard let name = reader.takeParameterName() else {
                guard reader.takeByte() != nil else { return }
                continue
            }
            reader.skipWhitespace()
            if isWithin, reader.skip("=") {
                reader.skipWhitespace()
                guard let value = reader.takeParameterValue() else { return }
                let last = challenges.count - 1
                if challenges[last].parameters.count < Self.parametersMax, challenges[last][name] == nil {
                    challenges[last].parameters[name] = value
                }
            } else if challenges.count < Self.challengesMax {
                var again = start
                let scheme = again.take { $0.isTokenCharacter }
                challenges.append(AuthChallenge(scheme: String(Substring(scheme))))
                isWithin = true
            } else {
                return
            }
        }
    }
}

extension ResponseHead {
    /// How the server, or the proxy with the status 407, wants the client to log in.
    package var challenges: [AuthChallenge] {
        AuthChallenge.all(in: self.values(self.status == 407 ? .proxyAuthenticate : .wwwAuthenticate))
    }
}
