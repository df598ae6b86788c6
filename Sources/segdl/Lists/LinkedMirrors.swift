import SegmentedDownload

/// Adds the mirrors that servers state in Link fields, before the downloads start.
enum LinkedMirrors {
    /// 8 probes run at once.
    private static let probesMax = 8

    /// Errors of a probe are ignored here. They are reported when the file is fetched.
    static func complete(
        _ requests: inout [DownloadRequest], _ configuration: DownloadConfiguration
    ) async throws(DownloadError) {
        var wanted: [Int] = []
        for index in requests.indices where requests[index].mirrors.isEmpty {
            switch requests[index].destination {
            case .file, .directory: wanted.append(index)
            case .descriptor, .stream: continue
            }
        }
        guard !wanted.isEmpty else { return }
        let asked = requests
        do {
            let found = try await withDownloadClient(configuration) { client in
                await withTaskGroup(of: (Int, RemoteFile?).self) { group in
                    var waiting = wanted[...]
                    var found: [(Int, RemoteFile)] = []
                    for _ in 0..<min(Self.probesMax, waiting.count) {
                        let index = waiting.removeFirst()
                        group.addTask { (index, try? await client.probe(asked[index])) }
                    }
                    while let (index, remote) = await group.next() {
                        if let remote { found.append((index, remote)) }
                        guard let next = waiting.popFirst() else { continue }
                        group.addTask { (next, try? await client.probe(asked[next])) }
                    }
                    return found
                }
            }
            for (index, remote) in found {
                requests[index].addMirrors(named: remote)
                requests[index].mirrors.removeAll { !configuration.schemes.contains($0.origin.scheme) }
            }
        } catch {
            throw DownloadError(wrapping: error)
        }
    }
}
