import SegmentedDownload
import SegmentedDownloadService

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Adds the files of a command line to the queue of the background service.
struct Submitter {
    let output: OutputOptions
    var paused = false
    var first = false
    var absence = ServiceClient.Absence.start

    /// 1000 files in one request, so that the answer comes soon.
    private static let filesMax = 1000

    func run(_ command: some ListingCommand, _ fetch: FetchRun) async -> ExitCode {
        let print = Printer()
        defer { print.drain() }
        do {
            try Self.refuseRunOptions(Array(CommandLine.arguments.dropFirst()))
            let (work, _) = try await fetch.prepared { () async throws(DownloadError) in try await command.work(fetch) }
            if let remark = work.remark, self.output.verbosity >= .normal { print.say(remark) }
            let directory = FilePath(FileManager.default.currentDirectoryPath)
            let files = try work.requests.map { Submission.File.request(try PortableRequest($0, in: directory)) }
            for (path, error) in work.refused { print.errors.send(FailureLine(error, of: path).text + "\n") }
            let code: ExitCode = work.refused.isEmpty ? .ok : .partial
            guard !files.isEmpty else { return code }
            let ids = try await ServiceClient.run(self.absence) { client in
                try await self.submit(files, client)
            }
            self.report(ids, work.requests, print)
            return code
        } catch {
            return print.fail(error)
        }
    }

    /// Sends the files in pieces. With `--first`, the last piece goes first, because each comes before all others.
    private func submit(_ files: [Submission.File], _ client: ServiceClient) async throws -> [String] {
        let starts = Array(stride(from: 0, to: files.count, by: Self.filesMax))
        var ids: [String] = []
        for start in self.first ? starts.reversed() : starts {
            let piece = Array(files[start..<min(start + Self.filesMax, files.count)])
            let answer: Submission.Answer = try await client.post(
                "/downloads", Submission(downloads: piece, paused: self.paused, first: self.first))
            ids = self.first ? answer.ids + ids : ids + answer.ids
        }
        return ids
    }

    private func report(_ ids: [String], _ requests: [DownloadRequest], _ print: Printer) {
        for (id, request) in zip(ids, requests) {
            if self.output.json {
                print.write(Added(id: id, url: request.source.description).jsonLine)
            } else if self.output.verbosity >= .normal {
                print.write("\(id)  \(request.source)")
            } else {
                print.write(id)
            }
        }
    }

    private struct Added: Encodable {
        let v = 1
        let event = "added"
        let id: String
        let url: String
    }

    /// The options of the whole run that apply to what this command itself does.
    private static let own: Set<String> = ["checksum-from", "linked-mirrors", "mirror"]
    /// The titles of the other groups that have options of the whole run.
    private static let titles: Set<String> = ["Transfer", "Speed", "Requests", "Network", "Hooks"]

    /// - Throws: ``DownloadError`` with code `usage` if an option was typed that the service would not apply.
    static func refuseRunOptions(_ arguments: [String]) throws(DownloadError) {
        for item in ArgumentWalk(arguments).items {
            guard let spelling = ArgumentWord(Array(item.word.utf8)).option,
                let option = OptionOutline.get?.options.first(where: { option in
                    option.names?.contains { $0.spelling == spelling } ?? false
                }), let title = option.sectionTitle, Self.titles.contains(title),
                !option.longNames.contains(where: { name in
                    Self.own.contains(name) || FileOption.edit(name, nil) != nil
                })
            else { continue }
            throw DownloadError(
                .usage, "\(spelling) applies to the whole background service, not to one of its files",
                hint: "Give it to segdl daemon, or write it into the configuration file; see also segdl limits")
        }
    }
}
