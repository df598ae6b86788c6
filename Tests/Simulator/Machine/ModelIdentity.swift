import HTTPTypes
import SegmentedDownloadCore

/// Where the URL of one download leads, and which file and tag each place serves.
///
/// Drawn with a generator of its own, so that worlds without it stay as they were.
struct ModelIdentity {
    /// A final URL. It always serves the same file.
    struct Place: Hashable {
        let file: Int
        let number: Int

        /// The last of three places is on another server, whose tags say nothing about those of the first.
        var target: String { "http://\(self.number == 2 ? "mirror" : "host")/file\(self.file)/place\(self.number)" }
    }

    /// Two URLs that a user may request for the same destination, and the places to which each may lead.
    private let places: [[Place]]
    private(set) var url = 0
    private var place = 0
    /// The percentage of requests before which the redirect moves to another place.
    private let movesPercent: Int
    /// Whether each request goes to another place, as behind a load balancer.
    private let isFickle: Bool
    /// The number of nodes, each with a tag of its own.
    private let nodes: Int
    /// Whether the nodes have different bytes; otherwise only their tags differ.
    private let nodesDiffer: Bool
    /// Whether different files have the same tag.
    private let sharesTags: Bool
    /// The percentage of requests before which the file changes.
    let changesPercent: Int
    /// For each node, the number of answers since its last one.
    private var idle: [Int]

    /// 8: once the faults stop, a node that was missed this often answers next. A download's patience is longer.
    private static let idleMax = 8

    init(_ origin: inout ModelOrigin, using generator: inout SplitMix64) {
        if Int.random(in: 0..<3, using: &generator) == 0 {
            origin.validation =
                [.unquoted, .repeated, .unparsable].randomElement(using: &generator) ?? .unquoted
        }
        self.places = (0..<2).map { url in
            (0..<Int.random(in: 1...3, using: &generator)).map { number in
                let isTwin = url + number > 0 && Bool.random(using: &generator)
                return Place(file: isTwin ? 1 : 0, number: number)
            }
        }
        self.movesPercent = [0, 1, 5, 20].randomElement(using: &generator) ?? 0
        self.isFickle = Int.random(in: 0..<8, using: &generator) == 0
        self.nodes = Int.random(in: 0..<3, using: &generator) == 0 ? Int.random(in: 2...3, using: &generator) : 1
        // Without a tag, nodes are indistinguishable.
        self.nodesDiffer = self.nodes > 1 && origin.validation != .none && Bool.random(using: &generator)
        self.sharesTags = Bool.random(using: &generator)
        self.changesPercent = [0, 0, 2, 10].randomElement(using: &generator) ?? 0
        self.idle = Array(repeating: 0, count: self.nodes)
    }

    /// Whether answers may come from more than one file or place, so that a download may end as changed.
    var mayLookChanged: Bool {
        self.nodesDiffer || Set(self.places.joined()).count > 1 && (self.movesPercent > 0 || self.isFickle)
            || Set(self.places.joined().map(\.file)).count > 1
    }

    /// At times has the next run request another URL, or the URL lead to another place.
    mutating func redraw(using generator: inout SplitMix64) {
        if Int.random(in: 0..<3, using: &generator) == 0 { self.url = 1 - self.url }
        self.place = Int.random(in: self.places[self.url].indices, using: &generator)
    }

    /// Chooses the node and place that answer the next request; configures the origin, and returns the place's name.
    mutating func lead(
        _ origin: inout ModelOrigin, isCalm: Bool, using generator: inout SplitMix64
    ) -> ResourceLocator {
        if !isCalm, Int.random(in: 0..<100, using: &generator) < self.movesPercent {
            self.place = Int.random(in: self.places[self.url].indices, using: &generator)
        }
        var place = self.places[self.url][self.place]
        if self.isFickle, !isCalm { place = self.places[self.url].randomElement(using: &generator) ?? place }
        let node = self.node(isCalm: isCalm, using: &generator)
        origin.file = place.file + (self.nodesDiffer ? 2 * node : 0)
        origin.tag = node + (self.sharesTags ? 0 : self.nodes * place.file)
        return .named(ResourceName(requested: "http://host/url\(self.url)", target: place.target))
    }

    private mutating func node(isCalm: Bool, using generator: inout SplitMix64) -> Int {
        var node = Int.random(in: 0..<self.nodes, using: &generator)
        if isCalm { node = self.idle.firstIndex { $0 >= Self.idleMax } ?? node }
        for other in self.idle.indices { self.idle[other] += 1 }
        self.idle[node] = 0
        return node
    }
}

/// Identifies the bytes of a file: two contents differ in every byte.
struct ModelContent: Hashable, CustomStringConvertible {
    /// Nonzero for other files of a world: at another place, or on another node of a farm.
    var file = 0
    let version: Int

    var description: String { "file \(self.file) version \(self.version)" }
}
