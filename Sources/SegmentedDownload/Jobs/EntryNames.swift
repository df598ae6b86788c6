package import SegmentedDownloadCore

/// The names of finished files that do not follow from their requests, because the response suggested them, or another file had
/// the likely name.
///
/// An entry takes 16 bytes and its name.
package struct EntryNames: Sendable {
    private struct Place {
        /// Entries that agree in it are told apart by the files' records.
        var high: UInt64
        /// Where the name begins.
        var start: Int
    }

    /// The names, each with a zero at its end.
    private var bytes: [UInt8] = []
    /// Sorted by entry.
    private var places: [Place] = []

    /// The names that `names` passes to its argument. An entry may have several.
    package init<Failure: Error>(
        _ names: ((EntryFingerprint, String) -> Void) throws(Failure) -> Void
    ) throws(Failure) {
        var (bytes, places): ([UInt8], [Place]) = ([], [])
        try names { entry, name in
            places.append(Place(high: entry.high, start: bytes.count))
            bytes += name.utf8
            bytes.append(0)
        }
        places.sort { ($0.high, $0.start) < ($1.high, $1.start) }
        (self.bytes, self.places) = (bytes, places)
    }

    /// The names of an entry's files, in no order.
    package subscript(entry: EntryFingerprint) -> [String] {
        var (low, high) = (0, self.places.count)
        while low < high {
            let middle = (low + high) / 2
            if self.places[middle].high < entry.high { low = middle + 1 } else { high = middle }
        }
        return self.places[low...].prefix { $0.high == entry.high }.map { place in
            String(decoding: self.bytes[place.start...].prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}

/// A line of the record of names: the fingerprint in hexadecimal, the percent-encoded name, and the CRC-32 of what is before it in
/// hexadecimal, with a space between two of them.
package enum EntryNameCodec {
    package static func encode(_ name: String, of entry: EntryFingerprint) -> [UInt8] {
        let text = "\(entry.bytes.hex) \(PercentEncoding.encode(name)) "
        return Array("\(text)\(CRC32(of: text.utf8).hex)\n".utf8)
    }

    /// Nil if the bytes, without the newline, are not a line of the record.
    package static func decode(_ line: ArraySlice<UInt8>) -> (entry: EntryFingerprint, name: String)? {
        let parts = line.split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].count == 2 * EntryFingerprint.length,
            parts[2].elementsEqual(CRC32(of: line.dropLast(parts[2].count)).hex.utf8),
            let high = UInt64(String(decoding: parts[0].prefix(16), as: UTF8.self), radix: 16),
            let share = UInt32(String(decoding: parts[0].dropFirst(16), as: UTF8.self), radix: 16)
        else { return nil }
        return (EntryFingerprint(high: high, share: share), PercentEncoding.decode(parts[1]))
    }
}
