import SegmentedDownload
let args = CommandLine.arguments
var c = DownloadConfiguration()
c.connectionsPerHostMax = 64
do {
try await withDownloadClient(c) { client in
    var r = DownloadRequest(try SourceURL(args[1]), to: .file(args[2]))
    r.segments = args[3] == "auto" ? .automatic : .exactly(Int(args[3])!)
    r.splitLengthMinimum = 65536
    if args.contains("-n") { r.continuation = .no }
    if args.contains("-r") { r.onChange = .restart }
    try await client.withGroup { g in
        let d = try g.add(r)
        for await e in d.events { if case .progress(let p) = e { if args.contains("-i"), p.bytesDone > 2000000 { print("pause"); await d.pause() } } else { print(e) } }
    }
}
} catch { print("ERR", error) }
