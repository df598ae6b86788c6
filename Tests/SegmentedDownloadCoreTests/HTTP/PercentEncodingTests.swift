import Testing

@testable import SegmentedDownloadCore

/// Text as a component of a path.
@Suite struct PercentEncodingTests {
    @Test("Unreserved characters stay, and every other byte is encoded with two digits")
    func encodes() {
        #expect(PercentEncoding.encode("azAZ09-._~") == "azAZ09-._~")
        // The neighbours of the ranges.
        #expect(PercentEncoding.encode("`{@[/:") == "%60%7B%40%5B%2F%3A")
        #expect(PercentEncoding.encode("\n %é") == "%0A%20%25%C3%A9")
        #expect(PercentEncoding.encode("") == "")
    }

    @Test("Every byte is decoded as it was encoded")
    func roundTrip() {
        let text = String(String.UnicodeScalarView((1..<0x250).compactMap { Unicode.Scalar($0) })) + "𝄞"
        let encoded = PercentEncoding.encode(text)
        #expect(PercentEncoding.decode(encoded.utf8) == text)
        #expect(encoded.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") })
    }
}
