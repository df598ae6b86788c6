/// A change of a file's text: it adds no newline, so that every line keeps its number.
struct Edit: Hashable {
    /// In the order in which they come where several are at one offset.
    enum Kind: Hashable {
        /// Put behind an expression that ends here.
        case close
        /// Put before an expression that begins here.
        case open
        /// Put in the place of so many bytes.
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
