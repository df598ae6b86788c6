/// A change of a file's text. An edit of a generated mutation adds no newline, so that every line keeps its number.
struct Edit: Hashable {
    /// The kinds in the order that applies to several edits at one offset.
    enum Kind: Hashable {
        /// Inserted after an expression that ends here.
        case close
        /// Inserted before an expression that begins here.
        case open
        /// Replaces this number of bytes.
        case replace(Int)

        var rank: Int {
            switch self {
            case .close: 0
            case .open: 1
            case .replace: 2
            }
        }
    }

    /// In bytes of UTF-8.
    let offset: Int
    let kind: Kind
    let text: String
}
