import Foundation
import Testing

@testable import SegmentedDownload

/// The files that pages, answers of APIs and lists of checksums name.
@Suite("Listings")
struct FileListingTests {
    /// The files of a document, each as `path URL digest… length`.
    static func read(_ text: String, from source: String? = "http://a/pub/dir/") throws -> [String] {
        try FileListing(Array(text.utf8), from: source.map { try SourceURL($0) }).files.map { file in
            ([file.path, file.source.string] + file.digests.map(\.description) + (file.length.map { ["\($0)"] } ?? []))
                .joined(separator: " ")
        }
    }

    static func problem(_ text: String, from source: String? = "http://a/pub/dir/") throws -> ListProblem? {
        let source = try source.map { try SourceURL($0) }
        return #expect(throws: ListProblem.self, "\(text)") { try FileListing(Array(text.utf8), from: source) }
    }

    private static let sha256 = String(repeating: "0a", count: 32)
    private static let md5 = String(repeating: "0b", count: 16)

    @Test(
        "The pages of nginx, Apache, lighttpd and Python list the files of their directory only",
        arguments: ["nginx-index", "apache-index", "lighttpd-index", "python-server-index"])
    func directories(name: String) throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../Fixtures/Recorded/\(name).html").standardizedFileURL
        let source = try SourceURL("http://archive.example.org/pub/images/")
        let listing = try FileListing(Array(Data(contentsOf: file)), from: source)
        let names = listing.files.map(\.path)
        #expect(names.filter { $0 != "first.img.sha256" } == ["a&b.img", "first.img"])
        #expect(listing.files[0].source.string == "http://archive.example.org/pub/images/a%26b.img")
        #expect(listing.directoryCount == 1)
    }

    @Test("Tags are read as browsers read them")
    func tags() throws {
        let page = """
            <!DOCTYPE html><title><a href="t"></title><script>"<a href=s>"</script ><!-- <a href="c"> -->
            <A CLASS='x>y' HREF = one.bin href=two.bin><a href='th&#114;ee&amp;.bin'>x</a><ahref="no"><a name="href">
            <a href=" four.bin\n"><a/href=five.bin><a href="http://a/pub/dir/six.bin"><a href="/pub/dir/seven.bin?x=1">
            """
        #expect(
            try Self.read(page) == [
                "one.bin http://a/pub/dir/one.bin", "three&.bin http://a/pub/dir/three&.bin",
                "four.bin http://a/pub/dir/four.bin", "five.bin http://a/pub/dir/five.bin",
                "six.bin http://a/pub/dir/six.bin", "seven.bin http://a/pub/dir/seven.bin?x=1",
            ])
    }

    @Test(
        "Links out of the directory are ignored",
        arguments: [
            "../x", "/x", "/pub/x", "http://b/pub/dir/x", "//b/pub/dir/x", "https://a/pub/dir/x",
            "http://a:81/pub/dir/x",
            "sub/x", "%2e%2e/x", "?C=N", "#top", "", ".", "..", "mailto:a@b", "javascript:x", "ftp://a/pub/dir/x",
            "http://[", "..%2f..%2f", "http://a@b/pub/dir/x",
        ])
    func others(link: String) throws {
        #expect(try Self.read("<a href=\"\(link)\"><a href=kept>") == ["kept http://a/pub/dir/kept"])
    }

    @Test("A name with an encoded slash or a hidden name is sanitised")
    func names() throws {
        #expect(try Self.read("<a href='x%2F..%2F.ssh'>") == ["_.ssh http://a/pub/dir/x%2F..%2F.ssh"])
    }

    @Test("The links of a package index may lead to another server, and carry digests")
    func packages() throws {
        #expect(
            try Self.read("<a href='https://b/c/d.whl#sha256=\(Self.sha256)'>d</a>") == [
                "d.whl https://b/c/d.whl sha256=\(Self.sha256)"
            ])
        let page = "<meta name=pypi:repository-version content=1.0><base href=http://b/><a href=x.whl><a href=y/>"
        #expect(try Self.read(page) == ["x.whl http://b/x.whl"])
        #expect(try Self.read("<base href=http://b/><a href=x.whl>") == [])
    }

    @Test("A line of a list of checksums that may name a file is reported, never left out")
    func unreadChecksums() throws {
        let good = "\(Self.sha256)  a\n"
        for line in [
            "\(Self.sha256.dropLast())  b", "sha256:\(Self.sha256)  b", "b", "SHA384 (b) = 00", "SHA256 (b) = 0",
        ] {
            let problem = try Self.problem("# list\n" + good + line)
            #expect(problem?.place == .line(3) && problem?.message.contains(line) == true, "\(line)")
        }
        let url = try Self.problem(good + "http://u:secret@b/f?secret")
        #expect(url?.message.contains("secret") == false && url?.message.contains("b/f?…") == true)
        #expect(try Self.problem(good + Self.md5)?.message == "the digest \(Self.md5) has no name")
        #expect(try Self.read("# list\n\n" + good + "SHA384 (a) = 00\nSIZE (a) = 5\n").count == 1)
    }

    @Test("A list of checksums names files beside it, and all digests of a file count")
    func checksums() throws {
        let list = """
            \(Self.sha256)  ab:c.bin
            \(Self.md5) *sub/c d.bin
            SHA256 (sub/c d.bin) = \(Self.sha256)
            """
        #expect(
            try Self.read(list) == [
                "ab:c.bin http://a/pub/dir/ab%3Ac.bin sha256=\(Self.sha256)",
                "sub/c d.bin http://a/pub/dir/sub/c%20d.bin sha256=\(Self.sha256) md5=\(Self.md5)",
            ])
        let other = String(repeating: "0c", count: 32)
        #expect(try Self.problem("\(Self.sha256)  a\n\(other)  a")?.message.contains("differ") == true)
        #expect(try Self.problem("\(Self.sha256)  a", from: nil)?.message.contains("give a base") == true)
        #expect(try Self.problem("nothing\n")?.message.contains("neither") == true)
    }

    @Test("An explicit list of conda has a URL with its digest on each line")
    func explicit() throws {
        #expect(
            try Self.read("# x\n@EXPLICIT\nhttp://b/c.conda#\(Self.md5)\nhttp://b/d.conda\n", from: nil) == [
                "c.conda http://b/c.conda md5=\(Self.md5)", "d.conda http://b/d.conda",
            ])
        #expect(try Self.problem("@EXPLICIT\nhttp://b/c.conda#12\n")?.place == .line(2))
    }

    @Test(
        "A name that leads out of the directory rejects the list",
        arguments: ["../x", "/x", "a/../b", "a//b", "", "a\\\\b", "c:/x"])
    func paths(name: String) throws {
        let tree = #"[{"type":"file","oid":"","path":"\#(name)","size":1}]"#
        let problem = try Self.problem(tree, from: "http://a/api/models/o/n/tree/main")
        #expect(problem?.code == .policy && problem?.place == .element("[0]"))
    }

    @Test("The files of a repository are below /resolve/, with paths and LFS digests")
    func repository() throws {
        let tree =
            #"[{"type":"directory","oid":"x","path":"d"},{"type":"file","oid":"x","path":"d/e f?","size":3,"lfs":{"oid":"\#(Self.sha256)"}}]"#
        #expect(
            try Self.read(tree, from: "http://a:81/api/datasets/o/n/tree/refs%2Fpr%2F1/d?recursive=true") == [
                "d/e f? http://a:81/datasets/o/n/resolve/refs%2Fpr%2F1/d/e%20f%3F sha256=\(Self.sha256) 3"
            ])
        #expect(try Self.problem(tree)?.message.contains("/api/models/") == true)
    }

    @Test("The assets of several releases are in directories with the tags' names")
    func releases() throws {
        let releases =
            #"[{"tag_name":"v1","assets":[{"name":"a","browser_download_url":"http://b/a","size":3,"digest":null}]}]"#
        #expect(try Self.read(releases, from: nil) == ["v1/a http://b/a 3"])
    }

    @Test("The links of InvenioRDM are those to the content")
    func entries() throws {
        let entries =
            #"{"links":{},"entries":[{"key":"k","checksum":"md5:\#(Self.md5)","links":{"self":"http://b/s","content":"http://b/c"}}]}"#
        #expect(try Self.read(entries, from: nil) == ["k http://b/c md5=\(Self.md5)"])
    }

    @Test(
        "A malformed answer is reported with its place",
        arguments: [
            (#"{"tag_name":"v","assets":[{"name":"a"}]}"#, ".assets[0].browser_download_url"),
            (#"{"files":[{"name":"a","download_url":1}]}"#, ".files[0].download_url"),
            (#"{"files":[{"key":"a","links":{}}]}"#, ".files[0]"),
            (#"{"meta":{},"name":"","files":[{"filename":"a","url":"b","hashes":{"sha256":"12"}}]}"#, ".files[0]"),
            (#"{"a":1}"#, ""), (#"[1]"#, ""), ("{", ""),
            (#"{"tag_name":"v","assets":[{"name":"a","browser_download_url":"b","size":-1}]}"#, ".assets[0]"),
        ])
    func malformed(answer: String, place: String) throws {
        #expect(try Self.problem(answer)?.place == .element(place), "\(answer)")
    }

    @Test("All digests of a package count, and two statements of one file that differ are an error")
    func severalDigests() throws {
        let index =
            #"{"meta":{},"name":"","files":[{"filename":"a","url":"b","hashes":{"md5":"\#(Self.md5)","sha256":"\#(Self.sha256)"}}]}"#
        #expect(try Self.read(index) == ["a http://a/pub/dir/b sha256=\(Self.sha256) md5=\(Self.md5)"])
        let channel =
            #"{"info":{},"packages":{"a":{"md5":"\#(Self.md5)","sha256":"\#(Self.sha256)","size":3}}}"#
        #expect(try Self.read(channel) == ["a http://a/pub/dir/a sha256=\(Self.sha256) md5=\(Self.md5) 3"])
        let file = { (size: Int, hash: String) in #"{"filename":"a","url":"b","hashes":{\#(hash)},"size":\#(size)}"# }
        let answer = { (first: String, second: String) in #"{"meta":{},"name":"","files":[\#(first),\#(second)]}"# }
        let (md5, sha256) = (#""md5":"\#(Self.md5)""#, #""sha256":"\#(Self.sha256)""#)
        #expect(
            try Self.read(answer(file(3, md5), file(3, sha256)))
                == ["a http://a/pub/dir/b sha256=\(Self.sha256) md5=\(Self.md5) 3"])
        let problem = try Self.problem(answer(file(3, md5), file(4, sha256)))
        #expect(problem?.message == "two lengths of a differ" && problem?.place == .element(".files[1]"))
    }

    @Test("An algorithm that is not supported leaves the file without a digest")
    func unknownAlgorithm() throws {
        let answer = #"{"meta":{},"name":"","files":[{"filename":"a","url":"b","hashes":{"blake2b":"12"}}]}"#
        #expect(try Self.read(answer) == ["a http://a/pub/dir/b"])
        #expect(try Self.read("[]") == [])
    }

    @Test("Files of the list's server inherit the password in its URL, others do not")
    func passwords() throws {
        let index = "<a href=x#sha256=\(Self.sha256)><a href=http://b/y#sha256=\(Self.sha256)>"
        let listing = try FileListing(Array(index.utf8), from: try SourceURL("http://me:secret@a/"))
        #expect(listing.files.map { $0.source.credentials != nil } == [true, false])
    }

    @Test(
        "The page of a repository, release, record or article stands for its list",
        arguments: [
            ("https://huggingface.co/o/n", "https://huggingface.co/api/models/o/n/tree/main?recursive=true"),
            (
                "https://hf.co/datasets/o/n/tree/v1/d",
                "https://huggingface.co/api/datasets/o/n/tree/v1/d?recursive=true"
            ),
            ("https://github.com/o/n", "https://api.github.com/repos/o/n/releases/latest"),
            ("https://github.com/o/n/releases/tag/a/b", "https://api.github.com/repos/o/n/releases/tags/a/b"),
            ("https://zenodo.org/record/12", "https://zenodo.org/api/records/12"),
            ("https://x.figshare.com/articles/dataset/T/12/3", "https://api.figshare.com/v2/articles/12/versions/3"),
            ("https://figshare.com/articles/T/12", "https://api.figshare.com/v2/articles/12"),
            ("https://figshare.com/articles/dataset/2020/7654321", "https://api.figshare.com/v2/articles/7654321"),
            (
                "https://figshare.com/articles/dataset/2020/7654321/2",
                "https://api.figshare.com/v2/articles/7654321/versions/2"
            ),
            ("https://figshare.com/articles/T/7654321/2", "https://api.figshare.com/v2/articles/7654321/versions/2"),
            ("https://pypi.org/project/n/", "https://pypi.org/simple/n/"),
            ("https://doi.org/10.5281/zenodo.12", "https://zenodo.org/api/records/12"),
            ("https://doi.org/10.6084/m9.figshare.12.v3", "https://api.figshare.com/v2/articles/12/versions/3"),
            ("http://huggingface.co:81/o/n", "http://huggingface.co:81/api/models/o/n/tree/main?recursive=true"),
            // Others stay.
            ("https://huggingface.co/api/models/o/n/tree/x", "https://huggingface.co/api/models/o/n/tree/x"),
            ("https://github.com/o/n/issues", "https://github.com/o/n/issues"),
            ("https://github.com.example/o/n", "https://github.com.example/o/n"),
            ("https://zenodo.org/records/x", "https://zenodo.org/records/x"),
            ("https://doi.org/10.1/x", "https://doi.org/10.1/x"),
        ])
    func addresses(page: String, list: String) throws {
        #expect(try ListingAddress.list(of: try SourceURL(page)).string == list)
    }
}
