import Testing

@testable import segdl

/// Sizes as text.
@Suite("Byte counts")
struct ByteCountTests {
    @Test(
        "A size has three digits, and at most four columns before its unit",
        arguments: [
            (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (10_107, "9.87 KiB"), (10_234, "9.99 KiB"),
            (10_235, "10.0 KiB"), (102_348, "99.9 KiB"), (102_349, "100 KiB"), (1_048_063, "1023 KiB"),
            (1_048_064, "1.00 MiB"), (88_290_099, "84.2 MiB"), (512 << 20, "512 MiB"), (1_331_439_862, "1.24 GiB"),
            (1 << 40, "1.00 TiB"), (.max, "8.00 EiB"),
        ] as [(Int64, String)])
    func digits(bytes: Int64, text: String) {
        #expect(ByteCount(bytes).description == text)
    }

    @Test("The unit is written once if both numbers have the same")
    func part() {
        #expect(ByteCount(3 << 30).description(of: ByteCount(4 << 30)) == "3.00 of 4.00 GiB")
        #expect(ByteCount(100 << 20).description(of: ByteCount(1 << 30), separator: "/") == "100 MiB/1.00 GiB")
        #expect(ByteCount(0).description(of: ByteCount(9)) == "0 of 9 B")
    }

    @Test("A rate of any value is shown")
    func rate() {
        #expect(ByteCount.perSecond(-1) == "0 B/s")
        #expect(ByteCount.perSecond(1536) == "1.50 KiB/s")
        #expect(ByteCount.perSecond(.infinity) == "888 PiB/s")
    }
}
