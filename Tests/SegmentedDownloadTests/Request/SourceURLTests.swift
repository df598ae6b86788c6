import SegmentedDownload
import Testing

@Suite("Source URL")
struct SourceURLTests {
    @Test(
        "An invalid URL is shown without what may be its password",
        arguments: ["http://user:secret@a b/", "user:secret@host", "http://user:secret@\u{301}host /"])
    func password(text: String) {
        let error = #expect(throws: DownloadError.self) { try SourceURL(text) }
        #expect(error?.description.contains("secret") == false)
    }

    @Test(
        "A user name or password that is not UTF-8 is refused, not dropped",
        arguments: ["http://u%bb@host/", "http://u:%ff@host/", "http://%c0%af:p@host/"])
    func credentials(text: String) {
        let error = #expect(throws: DownloadError.self) { try SourceURL(text) }
        #expect(error?.message.contains("not UTF-8") == true)
    }
}
