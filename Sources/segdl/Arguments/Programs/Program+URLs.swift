import SegmentedDownload
import SegmentedDownloadCore

extension Program {
    /// A URL as curl and wget take it, which may have no scheme, or one to three slashes behind it.
    func url(_ text: String) throws(CompatibilityOptions.Refusal) -> String {
        let scheme = text.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }
        guard scheme.first?.isLetter == true, text[scheme.endIndex...].hasPrefix(":/") else { return "http://\(text)" }
        guard ["http", "https"].contains(scheme.lowercased()) else {
            throw self.refusal("\(scheme)://", "Only http and https are supported")
        }
        let rest = text[scheme.endIndex...].dropFirst()
        let slashes = rest.prefix { $0 == "/" }.count
        return slashes <= 3 ? "\(scheme)://\(rest.dropFirst(slashes))" : text
    }

    /// The name in a URL; empty if it has none and there is no default.
    ///
    /// - Parameters:
    ///   - other: The name to use in place of an empty one.
    ///   - isDecoded: Whether escapes are decoded, as wget does.
    ///   - hasQuery: Whether the query belongs to the name, as for wget.
    func name(
        in url: String, default other: String = "", isDecoded: Bool, hasQuery: Bool
    ) throws(CompatibilityOptions.Refusal) -> String {
        let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
        let resource = url[start...].prefix { $0 != "#" }
        let path = resource.prefix { $0 != "?" }
        var name = path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? ""
        if name.isEmpty { name = other }
        guard !name.isEmpty else { return "" }
        if hasQuery { name += resource.dropFirst(path.count) }
        if isDecoded { name = PercentEncoding.decode(name.utf8) }
        // A name that segdl would change, or that leads elsewhere.
        guard
            name == SafeFilename(untrusted: name)?.value
                || name.hasPrefix(".") && !name.contains("/") && name != ".."
                    && name != "."
        else {
            throw self.refusal(
                "name \"\(name.shown)\"", "It is not a safe file name. Name the file on the command line")
        }
        return name
    }
}
