import Foundation
import Origin

/// The servers of the recipes: one origin, which the command uses as its proxy, with recorded answers.
struct RecordedServers: Sendable {
    private let documents: [String: (name: String, text: String)]
    /// Answers of the test itself, by host and path.
    private let others: [String: RoutedAnswer]

    /// The recorded answers by host and path.
    private static let answers = [
        "huggingface.co/api/models/org/name/tree/main": "huggingface-tree.json",
        "huggingface.co/api/models/org/name/tree/main#2": "huggingface-tree-2.json",
        "api.github.com/repos/owner/name/releases/latest": "github-release.json",
        "api.github.com/repos/owner/name/releases/tags/v1.2.0": "github-release.json",
        "zenodo.org/api/records/1234567": "zenodo-record.json",
        "api.figshare.com/v2/articles/7654321/versions/2": "figshare-article.json",
        "pypi.org/simple/example/": "python-index.html",
        "conda.anaconda.org/bioconda/linux-64/current_repodata.json": "conda-repodata.json",
        "archive.example.org/pub/images/": "nginx-index.html",
        "cdimage.debian.org/debian-cd/current/amd64/iso-cd/SHA512SUMS": "debian-SHA512SUMS",
        "goldsmr4.gesdisc.eosdis.nasa.gov/data/MERRA2/M2T1NXSLV.5.12.4/2024/01/": "earthdata-index.html",
    ]

    /// The last components of paths of files, with the seed of their content.
    static let seeds = [
        "config.json": 4, "model-00001-of-00002.safetensors": 1, "model-00002-of-00002.safetensors": 2,
        "model%20quantized.onnx": 3, "tool-1.2.0-linux-x86_64.tar.gz": 1, "tool-1.2.0-macos-arm64.tar.gz": 2,
        "SHA256SUMS": 3, "content": 1, "14201000": 1, "example-2.0-py3-none-any.whl": 1,
        "example-1.0-0.conda": 2, "other-1.0-0.conda": 3, "first.img": 1, "a%26b.img": 2,
        "debian-13.1.0-amd64-netinst.iso": 1, "zlib-1.3.1.tar.gz": 1,
        "MERRA2_400.tavg1_2d_slv_Nx.20240101.nc4": 4, "data.tar": 1,
    ]

    init(others: [String: RoutedAnswer] = [:]) throws {
        self.documents = try Self.answers.mapValues { ($0, try Recipe.recorded($0)) }
        self.others = others
    }

    /// The answer to a request. An unknown URL is not found.
    func answer(_ request: RoutedRequest) -> RoutedAnswer {
        // With the port, if the origin is not used as a proxy.
        let host = String(request.host.prefix { $0 != ":" })
        let place = host + request.path
        if let answer = self.others[place] { return answer }
        if request.host == "huggingface.co", request.query.contains("cursor="), let page = self.documents[place + "#2"]
        {
            return .document(page.text)
        }
        if let document = self.documents[place] {
            var fields = [("Content-Type", document.name.hasSuffix("json") ? "application/json" : "text/html")]
            if request.host == "huggingface.co" {
                fields.append(("Link", "<http://\(place)?recursive=true&cursor=ZXlK>; rel=\"next\""))
            }
            return .document(fields: fields, document.text)
        }
        guard let seed = Self.seeds[request.path.split(separator: "/").last.map(String.init) ?? ""] else {
            return .document(status: 404, "not found")
        }
        let content = RoutedAnswer.content("/64K/x?seed=\(request.path.contains("raw%20data") ? 2 : seed)")
        switch host {
        case "huggingface.co":
            // Only the server that the token is for gets it.
            return .redirect(to: "http://cdn-lfs.hf.co\(request.path)?Signature=x")
        case "cdn-lfs.hf.co":
            return request["authorization"] == nil ? content : .document(status: 400, "a token")
        case "goldsmr4.gesdisc.eosdis.nasa.gov":
            return Self.granule(request, content)
        case "bucket.s3.amazonaws.com":
            return Self.presigned(request)
        default:
            return content
        }
    }

    /// Earthdata: without its cookie, a server redirects to the login.
    private static func granule(_ request: RoutedRequest, _ content: RoutedAnswer) -> RoutedAnswer {
        guard request["authorization"] == nil else { return .document(status: 400, "a password") }
        if request["cookie"]?.contains("nasa_session=1") == true { return content }
        let port = request.host.drop { $0 != ":" }
        let back = "https://\(request.host)/data-redirect?path=\(request.path)"
        return .redirect(to: "https://urs.earthdata.nasa.gov\(port)/oauth/authorize?redirect_uri=\(back)")
    }

    /// A store with URLs that expire after 32 KiB.
    private static func presigned(_ request: RoutedRequest) -> RoutedAnswer {
        if request.query.contains("X-Amz-Signature=new") { return .content("/64K/x?seed=1&etag=a") }
        return request["range"]?.hasPrefix("bytes=0-") ?? false
            ? .content("/64K/x?seed=1&etag=a&close-after=32K:all")
            : .document(
                status: 403, fields: [("Content-Type", "application/xml")], "<Error><Code>AccessDenied</Code></Error>")
    }

    /// The login of Earthdata and the way back.
    static func earthdata(_ request: RoutedRequest) -> RoutedAnswer? {
        if request.host.hasPrefix("urs.earthdata.nasa.gov") {
            guard request["authorization"] == "Basic " + Data("name:password".utf8).base64EncodedString() else {
                return .document(status: 401, fields: [("WWW-Authenticate", "Basic realm=\"Earthdata\"")], "")
            }
            let back = request.query.dropFirst("redirect_uri=".count)
            return .redirect(to: "\(back)&code=abc")
        }
        guard request.path == "/data-redirect" else { return nil }
        let path = request.query.dropFirst("path=".count).prefix { $0 != "&" }
        return .redirect(to: "https://\(request.host)\(path)", fields: [("Set-Cookie", "nasa_session=1; Path=/")])
    }
}
