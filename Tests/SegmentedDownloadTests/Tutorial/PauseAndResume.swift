// The article with this file's name shows the code between "// begin" and "// end".

// begin
import Foundation
import SegmentedDownload

/// Downloads a fraction of a file and returns a state to resume from; nil if the file was already complete.
func fetch(_ part: Double, of request: DownloadRequest) async throws -> ResumeState? {
    try await withDownloadClient { client in
        try await client.withGroup { group in
            let download = try group.add(request)
            for await case .progress(let progress) in download.events {
                if let fraction = progress.fraction, fraction >= part { return await download.pause() }
            }
            return nil
        }
    }
}
// end

// begin
func save(_ state: ResumeState, to path: String) throws {
    try JSONEncoder().encode(state).write(to: URL(fileURLWithPath: path))
}

func resume(fromStateAt path: String) async throws -> DownloadResult {
    let data = try Data(contentsOf: URL(fileURLWithPath: path))
    let state = try JSONDecoder().decode(ResumeState.self, from: data)
    return try await withDownloadClient { client in
        try await client.withGroup { group in
            let download = try group.add(resuming: state)
            return try await download.result()
        }
    }
}
// end

// begin
func complete(_ path: FilePath, from url: SourceURL) async throws -> DownloadResult {
    var request = DownloadRequest(url)
    request.destination = .file(Adoption.destination(of: path))
    return try await withDownloadClient { client in
        try await client.adoption(of: path, for: request).begin()
        return try await client.download(request)
    }
}
// end

// begin
func fetch(_ request: DownloadRequest, pausedDuring action: () async throws -> Void) async throws -> DownloadResult {
    try await withDownloadClient { client in
        try await client.withGroup { group in
            let download = try group.add(request)
            await download.pause()
            try await action()
            download.resume()
            return try await download.result()
        }
    }
}
// end

// begin
func interrupted(in directory: FilePath) async throws -> [String] {
    var lines: [String] = []
    for path in try await SavedDownload.paths(in: directory) {
        let saved = try await SavedDownload(at: path)
        lines.append("\(saved.path): \(saved.bytesDone) of \(saved.bytesTotal) bytes")
    }
    return lines
}
// end

// begin
func resumeAll(in directory: FilePath) async throws -> (summary: GroupSummary, leftAlone: [String]) {
    try await withDownloadClient { client in
        try await client.withGroup { group in
            let found = try await group.restore(from: directory, .running)
            let omissions = found.omissions.map { "\($0.path): \($0.error)" }
            return (await group.waitForAll(), omissions)
        }
    }
}
// end
