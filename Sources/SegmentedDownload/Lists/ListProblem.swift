import SegmentedDownloadCore

/// A location in a list: a line of a text, or the path to an element of a JSON document.
package enum ListPlace: Hashable, Sendable {
    case line(Int)
    case element(String)
}

/// An error in a list, with its location.
package struct ListProblem: Error, Hashable {
    package let place: ListPlace
    package let message: String
    package let code: DownloadError.Code

    package init(_ place: ListPlace, _ message: String, code: DownloadError.Code = .usage) {
        self.place = place
        self.message = message
        self.code = code
    }

    /// The error with the list's name: `list.txt:3: …`, `list.json: .files[7]: …`
    package func failure(in list: String) -> DownloadError {
        let place =
            switch self.place {
            case .line(let number): ":\(number): "
            case .element(""): ": "
            case .element(let path): ": \(path.printable(limit: .max)): "
            }
        return DownloadError(
            self.code, "\(list)\(place)\(self.message)", hint: "Nothing was downloaded; correct the list")
    }
}
