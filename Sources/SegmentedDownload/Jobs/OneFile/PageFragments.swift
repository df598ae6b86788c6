import SegmentedDownloadCore

/// The bytes of a window that do not fill a page of the file cache yet.
///
/// A machine with a network file system sends whole pages. If a program writes a part of a page, the machine may read
/// the rest first and send it too: as it was, much later, if the machine was cut off meanwhile. Another task that took the
/// range over has written the rest by then. So a task writes only pages of which it has all bytes, and parts of pages at the
/// latest when they are claimed or must be durable, without the cache's help (``StorageOpenMode/through``).
struct PageFragments {
    /// A part of a page.
    private struct Fragment {
        var bytes: [UInt8]
        /// The file's bytes that it has, ordered and disjoint.
        var filled: [Range<Int64>] = []
    }

    /// Bytes to be written to the file.
    struct Run {
        let offset: Int64
        let bytes: [UInt8]
    }

    private let pageLength: Int
    /// The length of the file: its last page may be shorter.
    private let completeLength: Int64
    /// By the offset of the page.
    private var fragments: [Int64: Fragment] = [:]

    init(pageLength: Int, completeLength: Int64) {
        (self.pageLength, self.completeLength) = (pageLength, completeLength)
    }

    /// Divides a range into the parts of its first and its last page and the whole pages between them.
    func parts(of range: Range<Int64>) -> (head: Range<Int64>, pages: Range<Int64>, tail: Range<Int64>) {
        let length = Int64(self.pageLength)
        let first = min((range.lowerBound + length - 1) / length * length, range.upperBound)
        let last = range.upperBound == self.completeLength ? range.upperBound : range.upperBound / length * length
        let end = max(first, last)
        return (range.lowerBound..<first, first..<end, end..<range.upperBound)
    }

    /// Takes a part of one page. Returns the whole page once all of its bytes were taken; it stays until it is dropped.
    mutating func take(_ bytes: UnsafeRawBufferPointer, at offset: Int64) -> Run? {
        guard !bytes.isEmpty else { return nil }
        let page = offset - offset % Int64(self.pageLength)
        let end = min(page + Int64(self.pageLength), self.completeLength)
        // Removed, so that the bytes are not copied.
        var fragment =
            self.fragments.removeValue(forKey: page) ?? Fragment(bytes: [UInt8](repeating: 0, count: Int(end - page)))
        let start = Int(offset - page)
        fragment.bytes.withUnsafeMutableBytes { $0[start..<start + bytes.count].copyBytes(from: bytes) }
        fragment.filled = (fragment.filled + [offset..<offset + Int64(bytes.count)]).merged()
        self.fragments[page] = fragment
        return fragment.filled == [page..<end] ? Run(offset: page, bytes: fragment.bytes) : nil
    }

    /// Forgets the parts of pages that are written as a whole.
    mutating func drop(_ range: Range<Int64>) {
        guard !self.fragments.isEmpty else { return }
        self.fragments = self.fragments.filter { !range.contains($0.key) }
    }

    /// All bytes, in the order of their offsets.
    var runs: [Run] { self.runs(in: 0..<self.completeLength) }

    /// The bytes of the parts of pages that overlap a range, in the order of their offsets.
    func runs(in range: Range<Int64>) -> [Run] {
        self.fragments.sorted { $0.key < $1.key }.flatMap { page, fragment in
            fragment.filled.filter { $0.overlaps(range) }.map { part in
                let places = Int(part.lowerBound - page)..<Int(part.upperBound - page)
                return Run(offset: part.lowerBound, bytes: Array(fragment.bytes[places]))
            }
        }
    }

    /// Forgets bytes that were written. Bytes that were taken since stay.
    mutating func drop(_ runs: [Run]) {
        for run in runs {
            let page = run.offset - run.offset % Int64(self.pageLength)
            let written = run.offset..<run.offset + Int64(run.bytes.count)
            self.fragments[page]?.filled.removeAll {
                written.contains($0.lowerBound) && $0.upperBound <= written.upperBound
            }
            if self.fragments[page]?.filled.isEmpty ?? false { self.fragments[page] = nil }
        }
    }

    /// Puts the bytes that are not in the file yet into what was read from it.
    func overlay(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) {
        guard let target = buffer.baseAddress else { return }
        let range = offset..<offset + Int64(buffer.count)
        for run in self.runs(in: range) {
            let start = max(run.offset, range.lowerBound)
            let end = min(run.offset + Int64(run.bytes.count), range.upperBound)
            run.bytes.withUnsafeBytes { bytes in
                UnsafeMutableRawBufferPointer(start: target + Int(start - offset), count: Int(end - start))
                    .copyMemory(
                        from: UnsafeRawBufferPointer(rebasing: bytes[Int(start - run.offset)..<Int(end - run.offset)]))
            }
        }
    }
}
