import Foundation
import Origin
import SegmentedDownload
import TestSupport
import Testing

/// Names made from a template.
@Suite struct NameTemplateTests {
    @Test(
        "A file is named as its template says: MD5 of the URL, extension, suggested name, host, the download's own name",
        arguments: [
            ("{id}{ext}", "film.bin"), ("{host}-{name}", "127.0.0.1-file.bin"), ("all", "all"), ("{ext}", "_.bin"),
            ("x{id}{name}", "xfilmfile.bin"),
        ])
    func placeholders(template: String, name: String) async throws {
        try await Harness.run { harness in
            let result = await harness.fetch("/1M/file.bin") {
                $0.id = "film"
                $0.destination = .directory(harness.directory, name: try? NameTemplate(template))
            }
            #expect(result.value?.path.string == harness.directory + "/" + name, "\(result)")
            let left = try harness.names()
            #expect(left == [name])
        }
    }

    @Test(
        "The MD5 of the URL and the extension name a file as in the earlier library, also when it is resumed"
    )
    func digest() async throws {
        try await Harness.run { harness in
            let template = try NameTemplate("{md5url}{ext}")
            let resource = "/8M/file.bin?disposition=attachment;%20filename=other.tar"
            let toDirectory = { (request: inout DownloadRequest) in
                request.destination = .directory(harness.directory, name: template)
            }
            try await harness.interrupt(resource + "&stall-after=600000:all", after: 2.mebibytes, toDirectory)
            let names = try FileManager.default.contentsOfDirectory(atPath: harness.directory).sorted()
            let stem = try #require(names.first?.dropLast(".tar.segdl".count))
            #expect(names == ["\(stem).tar.segdl", "\(stem).tar.segdl-part"] && stem.count == 32)
            let result = await harness.fetch(resource, toDirectory)
            #expect(result.value.map { $0.bytesFetched < 8.mebibytes } == true, "\(result)")
            #expect(result.value?.path.string == harness.directory + "/\(stem).tar")
        }
        // The name equals md5sum's result for the URL without user name, password and fragment.
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let request = DownloadRequest(
                    try SourceURL("http://user:word@example.org/a#part"),
                    to: .directory("/d", name: try NameTemplate("{md5url}{ext}")))
                let download = try group.add(paused: request)
                #expect(download.path == "/d/6209df8e22630794e94481e14df5d213")
            }
        }
    }

    @Test("With every value in a template, the file stays in its directory and is not hidden")
    func safe() async throws {
        try await Harness.run { harness in
            try await harness.withGroup { group in
                let cases: [(template: String, id: Download.ID, name: String)] = [
                    ("{id}", "../../etc/passwd", "_.._.._etc_passwd"), ("{id}", ".bashrc", "_.bashrc"),
                    ("{id}", "-rf", "_rf"),
                    ("{id}", "a\u{202E}b", "a_b"), ("{id}", "x.segdl", "x.segdl_"), ("{id}", "..", "file"),
                ]
                for (template, id, name) in cases {
                    var request = DownloadRequest(
                        try SourceURL("http://127.0.0.1:1/file"), to: .directory("/d", name: try NameTemplate(template))
                    )
                    request.id = id
                    #expect(try group.add(paused: request).path.string == "/d/" + name)
                }
            }
        }
    }

    @Test("A malformed template is refused", arguments: ["", "{", "{nam", "{size}", "a/{name}", "{name"])
    func refused(text: String) async {
        let refused = await code { try NameTemplate(text) }
        #expect(refused == .usage)
    }
}
