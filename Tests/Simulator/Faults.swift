/// The faults that a simulation may inject.
package struct Faults: OptionSet, Hashable, Sendable, CustomStringConvertible {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    // The network.
    package static let refusal = Faults(rawValue: 1 << 0)
    package static let reset = Faults(rawValue: 1 << 1)
    package static let stall = Faults(rawValue: 1 << 2)
    package static let truncation = Faults(rawValue: 1 << 3)
    package static let blackHole = Faults(rawValue: 1 << 4)
    package static let unevenRates = Faults(rawValue: 1 << 5)

    // The origin.
    package static let errors = Faults(rawValue: 1 << 6)
    package static let lies = Faults(rawValue: 1 << 7)
    package static let change = Faults(rawValue: 1 << 8)
    package static let redirects = Faults(rawValue: 1 << 9)
    package static let differingMirrors = Faults(rawValue: 1 << 10)
    package static let noRanges = Faults(rawValue: 1 << 11)
    package static let weakIdentity = Faults(rawValue: 1 << 12)

    // The disk.
    package static let shortWrites = Faults(rawValue: 1 << 13)
    package static let noSpace = Faults(rawValue: 1 << 14)
    package static let diskErrors = Faults(rawValue: 1 << 15)
    package static let slowDisk = Faults(rawValue: 1 << 16)

    // The machine and its user.
    package static let kill = Faults(rawValue: 1 << 17)
    package static let powerLoss = Faults(rawValue: 1 << 18)
    package static let user = Faults(rawValue: 1 << 19)

    // The identity of files.
    package static let identity = Faults(rawValue: 1 << 20)

    /// Files that are overwritten in place on the origin: responses being sent go on with the new bytes.
    package static let overwriting = Faults(rawValue: 1 << 21)

    /// What is stated about the bytes: digests that servers and users state, some of them wrong, damage that only these show,
    /// variants by a request field, parts of files, and files that another program edits.
    package static let statements = Faults(rawValue: 1 << 22)

    package static let names: [(String, Faults)] = [
        ("refusal", .refusal), ("reset", .reset), ("stall", .stall), ("truncation", .truncation),
        ("black-hole", .blackHole), ("uneven-rates", .unevenRates), ("errors", .errors), ("lies", .lies),
        ("change", .change), ("redirects", .redirects), ("differing-mirrors", .differingMirrors),
        ("no-ranges", .noRanges), ("weak-identity", .weakIdentity), ("short-writes", .shortWrites),
        ("no-space", .noSpace), ("disk-errors", .diskErrors), ("slow-disk", .slowDisk), ("kill", .kill),
        ("power-loss", .powerLoss), ("user", .user),
    ]

    /// Faults that are drawn apart from the others, so that they do not change older seeds.
    package static let namesApart: [(String, Faults)] = [
        ("identity", .identity), ("overwriting", .overwriting), ("statements", .statements),
    ]

    package static let all = Faults((Self.names + Self.namesApart).map(\.1))

    package var description: String {
        self.isEmpty
            ? "none"
            : (Self.names + Self.namesApart).filter { self.contains($0.1) }.map(\.0).joined(separator: ",")
    }

    /// Parses ``description``; `nil` if a name is unknown.
    package init?(_ text: String) {
        self = []
        if text == "none" { return }
        for name in text.split(separator: ",") {
            guard
                let fault = name == "all"
                    ? Faults.all : (Self.names + Self.namesApart).first(where: { $0.0 == name })?.1
            else {
                return nil
            }
            self.formUnion(fault)
        }
    }
}
