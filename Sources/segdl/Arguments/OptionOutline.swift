import ArgumentParser

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The options of the command that fetches, as the parser describes them.
struct OptionOutline: Decodable {
    struct Option: Decodable {
        struct Name: Decodable {
            let kind: String
            let name: String

            var spelling: String { self.kind == "long" ? "--\(self.name)" : "-\(self.name)" }
        }

        let kind: String
        let names: [Name]?
        let valueName: String?
        let abstract: String?
        let sectionTitle: String?

        var longNames: [String] { (self.names ?? []).filter { $0.kind == "long" }.map(\.name) }
        var isFlag: Bool { self.kind == "flag" }
    }

    private struct Dump: Decodable {
        struct Command: Decodable {
            let arguments: [Option]?
        }

        let command: Command
    }

    let options: [Option]

    init(from decoder: any Decoder) throws {
        self.options = try Dump(from: decoder).command.arguments ?? []
    }

    /// Describing all options takes some milliseconds.
    static let get = try? JSONDecoder().decode(OptionOutline.self, from: Data(GetCommand._dumpHelp().utf8))

    func option(_ longName: String) -> Option? { self.options.first { $0.longNames.contains(longName) } }
}
