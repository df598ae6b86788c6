import SegmentedDownload
let args = CommandLine.arguments
var c = DownloadConfiguration()
if args.count > 4 { c.certificateAuthorityFile = args[4] }
c.connectionsPerHostMax = 64
do {
try await withDownloadClient(c) { client in
    var r = DownloadRequest(try SourceURL(args[1]), to: .file(args[2]))
    r.segments = args[3] == "auto" ? .automatic : .exactly(Int(args[3])!)
    r.ifExists = .overwrite
    try await client.withGroup { g in
        let d = try g.add(r)
        for await e in d.events { if case .progress = e { if args.contains("-p") {print(e) } } else { print(e) } }
    }
}
} catch { print("ERR", error) }
