import SegmentedDownloadCore
import Testing

@testable import SegmentedDownload

@Suite("Bytes that do not fill a page")
struct PageFragmentsTests {
    /// Writes the bytes of a range as a window does. Returns what goes to the file at once.
    private static func write(
        _ range: Range<Int64>, _ fragments: inout PageFragments, into file: inout [UInt8]
    ) -> [Range<Int64>] {
        let bytes = range.map { UInt8(truncatingIfNeeded: $0 * 7 + 1) }
        let parts = fragments.parts(of: range)
        var written = parts.pages.isEmpty ? [] : [parts.pages]
        for offset in parts.pages { file[Int(offset)] = bytes[Int(offset - range.lowerBound)] }
        fragments.drop(parts.pages)
        for part in [parts.head, parts.tail] {
            bytes[Int(part.lowerBound - range.lowerBound)..<Int(part.upperBound - range.lowerBound)].withUnsafeBytes {
                guard let page = fragments.take($0, at: part.lowerBound) else { return }
                file.replaceSubrange(Int(page.offset)..<Int(page.offset) + page.bytes.count, with: page.bytes)
                written.append(page.offset..<page.offset + Int64(page.bytes.count))
                fragments.drop([page])
            }
        }
        return written
    }

    @Test("In any order of writes, whole pages go to the file at once, and the rest can be read and is left")
    func random() {
        var generator = SplitMix64(seed: 1)
        for _ in 0..<300 {
            let length = Int64.random(in: 1...100, using: &generator)
            var fragments = PageFragments(pageLength: 16, completeLength: length)
            var file = [UInt8](repeating: 0, count: Int(length))
            var expected = file
            for _ in 0..<Int.random(in: 1...12, using: &generator) {
                let start = Int64.random(in: 0..<length, using: &generator)
                let range = start..<Int64.random(in: start + 1...length, using: &generator)
                for offset in range { expected[Int(offset)] = UInt8(truncatingIfNeeded: offset * 7 + 1) }
                for written in Self.write(range, &fragments, into: &file) {
                    #expect(
                        written.lowerBound % 16 == 0 && (written.upperBound % 16 == 0 || written.upperBound == length))
                }
                var read = file
                read.withUnsafeMutableBytes { fragments.overlay($0, at: 0) }
                #expect(read == expected)
                if Bool.random(using: &generator) {
                    let runs = fragments.runs
                    for run in runs {
                        file.replaceSubrange(Int(run.offset)..<Int(run.offset) + run.bytes.count, with: run.bytes)
                    }
                    fragments.drop(runs)
                    #expect(fragments.runs.isEmpty && file == expected)
                }
            }
        }
    }

    @Test("A page stays until it is dropped: its write may fail")
    func whole() {
        var fragments = PageFragments(pageLength: 16, completeLength: 100)
        let page = [UInt8](repeating: 1, count: 16).withUnsafeBytes { bytes in
            let first = fragments.take(UnsafeRawBufferPointer(rebasing: bytes[..<9]), at: 16)
            #expect(first == nil)
            return fragments.take(UnsafeRawBufferPointer(rebasing: bytes[9...]), at: 25)
        }
        #expect(fragments.runs.map(\.bytes.count) == [16])
        fragments.drop(page.map { [$0] } ?? [])
        #expect(page != nil && fragments.runs.isEmpty)
    }

    @Test("Bytes that were taken while others were written stay")
    func during() {
        var fragments = PageFragments(pageLength: 16, completeLength: 100)
        var file = [UInt8](repeating: 0, count: 100)
        _ = Self.write(0..<5, &fragments, into: &file)
        let runs = fragments.runs
        _ = Self.write(5..<9, &fragments, into: &file)
        fragments.drop(runs)
        #expect(fragments.runs.map { $0.offset..<$0.offset + Int64($0.bytes.count) } == [0..<9])
    }
}
