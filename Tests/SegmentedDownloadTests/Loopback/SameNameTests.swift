import Foundation
import Origin
import SegmentedDownload
import TestSupport
import Testing

/// Different files whose names or destinations are the same.
@Suite struct SameNameTests {
    /// Fetches requests one after the other in one group; how each ended.
    private static func codes(
        _ harness: Harness, _ requests: [DownloadRequest]
    ) async throws -> [DownloadError.Code?] {
        var configuration = DownloadConfiguration()
        configuration.limits.downloads = 1
        return try await harness.withGroup(configuration) { group in
            var codes: [DownloadError.Code?] = []
            for download in try requests.map({ try group.add($0) }) {
                do {
                    _ = try await download.result()
                    codes.append(nil)
                } catch let error as DownloadError {
                    codes.append(error.code)
                }
            }
            return codes
        }
    }

    @Test(
        "Of URLs to which the server gives one name, the first one's file stays and the others fail",
        arguments: [DownloadOptions.ExistingFilePolicy.overwrite, .skip], [1, 4] as [Int64])
    func suggested(policy: DownloadOptions.ExistingFilePolicy, mebibytes: Int64) async throws {
        try await Harness.run { harness in
            let requests = try ["one", "two", "three"].map { name in
                try harness.request("/\(mebibytes)M/\(name)?disposition=attachment;%20filename=file.bin") {
                    $0.destination = .directory(harness.directory)
                    $0.ifExists = policy
                }
            }
            #expect(try await Self.codes(harness, requests) == [nil, .exists, .exists])
            #expect(harness.contains(seed: 1, length: mebibytes << 20))
            #expect(try harness.names() == ["file.bin"])
        }
    }

    @Test("A URL that is named twice is fetched or skipped as before", arguments: [true, false])
    func sameURL(isSkipped: Bool) async throws {
        try await Harness.run { harness in
            let requests = try [harness.path, harness.directory + "/./file.bin"].map { path in
                try harness.request("/1M/file.bin") {
                    $0.destination = .file(.init(path))
                    $0.ifExists = isSkipped ? .skip : .overwrite
                }
            }
            #expect(try await Self.codes(harness, requests) == [nil, nil])
            #expect(harness.contains(seed: 1, length: 1.mebibytes))
        }
    }

    @Test("With the policy to rename, another file does not take the part of an interrupted download")
    func interrupted() async throws {
        try await Harness.run { harness in
            try await harness.interrupt("/8M/file.bin?stall-after=600000:all", after: 2.mebibytes) {
                $0.ifExists = .rename
            }
            let other = await harness.fetch("/4M/file.bin") { $0.ifExists = .rename }
            #expect(other.value?.path.string == harness.directory + "/file.1.bin", "\(other)")
            #expect(harness.exists(harness.part) && harness.exists(harness.manifest))
            let first = await harness.fetch("/8M/file.bin") { $0.ifExists = .rename }
            #expect(first.value?.path.string == harness.path, "\(first)")
            #expect(first.value.map { $0.bytesFetched < 8.mebibytes } == true, "\(first)")
            #expect(harness.contains(seed: 1, length: 8.mebibytes))
            #expect(try harness.names() == ["file.1.bin", "file.bin"])
        }
    }

    @Test(
        "Of two URLs with one destination the next run keeps one's file, and the other fails",
        arguments: [DownloadOptions.ExistingFilePolicy.verify, .update], [1, 2])
    func nextRun(policy: DownloadOptions.ExistingFilePolicy, downloads: Int) async throws {
        try await Harness.run { harness in
            try FileManager.default.createSymbolicLink(
                atPath: harness.directory + "/link", withDestinationPath: harness.directory)
            let requests = try [("one", ""), ("two", "/link")].map { name, directory in
                try harness.request("/1M/\(name)") {
                    $0.destination = .file(.init(harness.directory + directory + "/file.bin"))
                    $0.ifExists = policy
                }
            }
            for run in 1...3 {
                var configuration = DownloadConfiguration()
                configuration.limits.downloads = downloads
                let results = try await harness.withGroup(configuration) { group in
                    let added = try requests.map { try group.add($0) }
                    var ends: [Result<DownloadResult, DownloadError>] = []
                    for download in added {
                        do throws(DownloadError) {
                            ends.append(.success(try await download.result()))
                        } catch {
                            ends.append(.failure(error))
                        }
                    }
                    return ends
                }
                #expect(results.count { (try? $0.get()) != nil } == 1, "run \(run): \(results)")
            }
        }
    }
}
