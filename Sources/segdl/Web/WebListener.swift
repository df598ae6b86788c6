import HTTPTypes
import Hummingbird
import SegmentedDownload
import SegmentedDownloadService

/// What is answered over TCP: aria2's JSON-RPC, and the web page with the API that it uses.
struct WebListener: Sendable {
    let rpc: Aria2RPC
    let api: ControlAPI
    let policy: WebPolicy
    let secret: String
    let hasPage: Bool

    /// - Parameter idle: Counts the requests that are being answered.
    func router(_ idle: IdleWatch) -> Router<ServiceContext> {
        let router = Router(context: ServiceContext.self)
        // Before the routes: middleware applies only to those that follow.
        router.add(middleware: idle.middleware)
        router.add(middleware: WebGuard(policy: self.policy))
        router.post("jsonrpc") { request, _ in
            let buffer = try await request.body.collect(upTo: WebGuard.lengthMax)
            let answer = await self.rpc.answer(Array(buffer.readableBytesView))
            return Response(
                status: Self.status(of: answer), headers: [.contentType: "application/json-rpc"],
                body: ResponseBody(byteBuffer: ByteBuffer(bytes: answer.bytes)))
        }
        if self.hasPage {
            for file in WebPage.files {
                router.get(RouterPath(file.path)) { _, _ in
                    Response(
                        status: .ok, headers: [.contentType: file.type],
                        body: ResponseBody(byteBuffer: ByteBuffer(bytes: file.bytes)))
                }
            }
            self.api.add(to: router.group().add(middleware: WebSecret(secret: self.secret)))
        }
        return router
    }
}

extension WebListener {
    /// The status that aria2 sends with an answer. Front-ends see a refused call by it.
    private static func status(of answer: Aria2RPC.Answer) -> HTTPResponse.Status {
        guard let code = answer.errorCode else { return .ok }
        return [1, -32600].contains(code) ? .badRequest : .internalServerError
    }
}

/// The files of the web page, which are part of the program.
enum WebPage {
    struct File: Sendable {
        let path: String
        let type: String
        let bytes: [UInt8]
    }

    private static let script = "text/javascript; charset=utf-8"

    static let files = [
        File(path: "/", type: "text/html; charset=utf-8", bytes: PackageResources.index_html),
        File(path: "/page.css", type: "text/css; charset=utf-8", bytes: PackageResources.page_css),
        File(path: "/add.js", type: Self.script, bytes: PackageResources.add_js),
        File(path: "/api.js", type: Self.script, bytes: PackageResources.api_js),
        File(path: "/app.js", type: Self.script, bytes: PackageResources.app_js),
        File(path: "/chart.js", type: Self.script, bytes: PackageResources.chart_js),
        File(path: "/detail.js", type: Self.script, bytes: PackageResources.detail_js),
        File(path: "/dom.js", type: Self.script, bytes: PackageResources.dom_js),
        File(path: "/input.js", type: Self.script, bytes: PackageResources.input_js),
        File(path: "/list.js", type: Self.script, bytes: PackageResources.list_js),
        File(path: "/panels.js", type: Self.script, bytes: PackageResources.panels_js),
        File(path: "/store.js", type: Self.script, bytes: PackageResources.store_js),
        File(path: "/text.js", type: Self.script, bytes: PackageResources.text_js),
    ]
}
