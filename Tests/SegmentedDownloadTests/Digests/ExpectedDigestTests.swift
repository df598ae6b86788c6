import SegmentedDownload
import Testing

@Suite("Expected digest")
struct ExpectedDigestTests {
    private static let hex = "d41d8cd98f00b204e9800998ecf8427e"

    @Test(
        "An algorithm and its digits are accepted in either case", arguments: ["md5=\(hex)", "MD5=\(hex.uppercased())"])
    func accepted(text: String) {
        #expect(ExpectedDigest(text)?.description == "md5=\(Self.hex)")
    }

    @Test(
        "Any other text is refused",
        arguments: ["", "md5", "md5=", "=md5=\(hex)", "md5=\(hex)0", "md6=\(hex)", "md5==\(hex)"])
    func refused(text: String) {
        #expect(ExpectedDigest(text) == nil)
    }
}
