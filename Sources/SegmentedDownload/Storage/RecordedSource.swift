import SegmentedDownloadCore

/// A source as a manifest has it: in the order of the request, so that whoever goes on names the same one first.
struct RecordedSource: Hashable {
    let url: String
    /// Whether its validators are the manifest's; where none is said to be, they are the first one's.
    var isReference = false
    /// Whether it is not the user's choice, but that of a server's list.
    var isForeign = false

    init(_ url: String, isReference: Bool = false, isForeign: Bool = false) {
        self.url = url
        self.isReference = isReference
        self.isForeign = isForeign
    }

    /// No URL begins with the marks.
    init(recorded text: String) {
        var rest = text[...]
        if rest.hasPrefix("*") {
            self.isReference = true
            rest.removeFirst()
        }
        if rest.hasPrefix("~") {
            self.isForeign = true
            rest.removeFirst()
        }
        self.url = String(rest)
    }

    /// What names the resource of a recorded URL, see ``SourceURL/resourceText``.
    static func resourceText(of url: String) -> String? { (try? SourceURL(url))?.resourceText }

    var text: String { (self.isReference ? "*" : "") + (self.isForeign ? "~" : "") + self.url }
}

extension Manifest.Header {
    var recordedSources: [RecordedSource] { self.sources.map { RecordedSource(recorded: $0) } }
}

extension [RecordedSource] {
    var reference: String? { (self.first(where: \.isReference) ?? self.first)?.url }
}
