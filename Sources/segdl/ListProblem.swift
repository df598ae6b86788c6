import SegmentedDownload

/// Why a list cannot be used, and where.
struct ListProblem: Error, Hashable {
    let place: InputList.Place
    let message: String
    let code: DownloadError.Code

    init(_ place: InputList.Place, _ message: String, code: DownloadError.Code = .usage) {
        self.place = place
        self.message = message
        self.code = code
    }

    /// The same of a list with a name: `list.txt:3: …`, `list.json: .files[7]: …`
    func failure(in list: String) -> DownloadError {
        let place =
            switch self.place {
            case .line(let number): ":\(number): "
            case .element(""): ": "
            case .element(let path): ": \(path.shown): "
            }
        return DownloadError(
            self.code, "\(list)\(place)\(self.message)", hint: "Nothing was begun; put the list right")
    }
}
