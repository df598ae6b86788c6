import SegmentedDownloadCore

/// A source as a manifest records it, in the order of the request.
struct RecordedSource: Hashable {
    let url: String
    /// Whether the manifest's validators come from this source. If no source is marked, they come from the first.
    var isReference = false
    /// Whether the source was named by a server's list and not by the user.
    var isForeign = false

    init(_ url: String, isReference: Bool = false, isForeign: Bool = false) {
        self.url = url
        self.isReference = isReference
        self.isForeign = isForeign
    }

    /// Parses a recorded source. A URL cannot begin with the marks `*` and `~`.
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

    /// The resource text of a recorded URL; see ``SourceURL/resourceText``.
    static func resourceText(of url: String) -> String? { (try? SourceURL(url))?.resourceText }

    var text: String { (self.isReference ? "*" : "") + (self.isForeign ? "~" : "") + self.url }
}

extension Manifest.Header {
    var recordedSources: [RecordedSource] { self.sources.map { RecordedSource(recorded: $0) } }
}

extension [RecordedSource] {
    var reference: String? { (self.first(where: \.isReference) ?? self.first)?.url }
}

extension DownloadRequest {
    /// The sources as a manifest records them.
    func recordedSources(reference: SourceID) -> [String] {
        self.sources.enumerated().map { index, source in
            RecordedSource(
                source.string, isReference: index > 0 && index == reference.rawValue,
                isForeign: self.foreignSources.contains(source)
            ).text
        }
    }
}
