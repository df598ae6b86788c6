/// The comparisons of bytes on disk with those of the sources.
struct Comparisons: Hashable, Sendable {
    var audits = Audits()
    var disputes = Disputes()
    var confirmation = Confirmation()
}
