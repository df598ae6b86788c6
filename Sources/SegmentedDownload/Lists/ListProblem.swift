import SegmentedDownloadCore

/// A place in a list: a line of a text, or an element of a JSON document by the path to it.
package enum ListPlace: Hashable, Sendable {
    case line(Int)
    case element(String)
}

/// Why a list cannot be used, and where.
package struct ListProblem: Error, Hashable {
    package let place: ListPlace
    package let message: String
    package let code: DownloadError.Code

    package init(_ place: ListPlace, _ message: String, code: DownloadError.Code = .usage) {
        self.place = place
        self.message = message
        self.code = code
    }

    /// The same of a list with a name: `list.txt:3: …`, `list.json: .files[7]: …`
    package func failure(in list: String) -> DownloadError {
        let place =
            switch self.place {
            case .line(let number): ":\(number): "
            case .element(""): ": "
            case .element(let path): ": \(path.printable(limit: .max)): "
            }
        return DownloadError(
            self.code, "\(list)\(place)\(self.message)", hint: "Nothing was begun; put the list right")
    }
}
