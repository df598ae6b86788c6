import SegmentedDownloadCore

/// Inputs for parsers: random bytes, and valid examples with random damage, which reach deeper.
struct HostileText: Sequence {
    /// For each seed: the four seeds of a test make 10,000, and all parsers together take 3 s in a debug build.
    static let countDefault = 2_500

    /// Bytes with a meaning in some parser, and text that is difficult in Swift or on a terminal.
    private static let splices = [
        "", " ", "\t", "\r\n", "\0", "\u{1B}[2J", "\u{202E}", "\u{200B}", "\u{301}", "\u{FFFD}", "ä", "🏴", "/", "\\",
        "..", ".", "-", "~", "%", "%2f", "%00", "%C3", "%C3%A4", "\"", "'", ";", "=", "*", ",", ":", "0", "9", "00",
        "18446744073709551616", "9223372036854775807", "9223372036854775808", "bytes ", "W/", "GMT", ".segdl",
    ]

    let examples: [String]
    let seed: UInt64
    var count = HostileText.countDefault

    func makeIterator() -> AnyIterator<String> {
        var generator = SplitMix64(seed: self.seed)
        var left = self.count
        return AnyIterator {
            guard left > 0 else { return nil }
            left -= 1
            return self.text(using: &generator)
        }
    }

    private func text(using generator: inout SplitMix64) -> String {
        var bytes = Array((self.examples.randomElement(using: &generator) ?? "").utf8)
        if Int.random(in: 0..<4, using: &generator) == 0 {
            let length = Int.random(in: 0...64, using: &generator)
            bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
        }
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            let start = Int.random(in: 0...bytes.count, using: &generator)
            let end = Int.random(in: start...Swift.min(start + 4, bytes.count), using: &generator)
            let splice = Self.splices.randomElement(using: &generator) ?? ""
            bytes.replaceSubrange(start..<end, with: splice.utf8)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
