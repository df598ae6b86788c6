/// The encoding of a label: its ID, the bits of the priority, then keys and values in turn. Keys are sorted, so equal
/// labels have equal encodings.
extension ByteWriter {
    mutating func write(_ label: Manifest.Label) {
        self.write(label.id)
        self.write(label.priority.bitPattern)
        self.write(label.userInfo.sorted { Self.isBefore($0.key, $1.key) }.flatMap { [$0.key, $0.value] })
    }

    /// Compares bytes. The order of `String` depends on the Unicode tables of the Swift version.
    fileprivate static func isBefore(_ left: String, _ right: String) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }
}

extension ByteReader {
    /// Nil if the bytes are not the encoding of any label.
    mutating func readLabel() -> Manifest.Label? {
        guard let id = self.readOptionalString(), let bits: UInt64 = self.read(), let texts = self.readStrings(),
            texts.count.isMultiple(of: 2)
        else { return nil }
        let priority = Double(bitPattern: bits)
        guard priority > 0, priority <= 1 else { return nil }
        var userInfo: [String: String] = [:]
        var last: String?
        for index in stride(from: 0, to: texts.count, by: 2) {
            // A dictionary treats two Unicode spellings of one character as the same key, and would silently drop one
            // of the two.
            if let last, !ByteWriter.isBefore(last, texts[index]) { return nil }
            guard userInfo.updateValue(texts[index + 1], forKey: texts[index]) == nil else { return nil }
            last = texts[index]
        }
        return Manifest.Label(id: id, priority: priority, userInfo: userInfo)
    }
}
