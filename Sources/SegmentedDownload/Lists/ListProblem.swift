import SegmentedDownloadCore

/// A location in a list: a line of a text, or the path to an element of a JSON document.
package enum ListPlace: Hashable, Sendable {
    case line(Int)
    case element(String)

    /// The place with the list's name: `list.txt:3`, `list.json: .files[7]`.
    package func name(in list: String) -> String {
        switch self {
        case .line(let number): "\(list):\(number)"
        case .element(""): list
        case .element(let path): "\(list): \(path.printable(limit: .max))"
        }
    }
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
        DownloadError(
            self.code, "\(self.place.name(in: list)): \(self.message)",
            hint: "Nothing was downloaded; correct the list")
    }
}
