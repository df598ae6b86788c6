/// A label is the name, the priority's bits, and keys and values in turn, keys in order: one label has one spelling.
extension ByteWriter {
    mutating func write(_ label: Manifest.Label) {
        self.write(label.id)
        self.write(label.priority.bitPattern)
        self.write(label.userInfo.sorted { Self.isBefore($0.key, $1.key) }.flatMap { [$0.key, $0.value] })
    }

    /// By bytes: the order of `String` depends on the Unicode tables of whoever compiled it.
    fileprivate static func isBefore(_ left: String, _ right: String) -> Bool {
        left.utf8.lexicographicallyPrecedes(right.utf8)
    }
}

extension ByteReader {
    /// Absent where the bytes are not what ``ByteWriter`` makes of any label.
    mutating func readLabel() -> Manifest.Label? {
        guard let id = self.readOptionalString(), let bits: UInt64 = self.read(), let texts = self.readStrings(),
            texts.count.isMultiple(of: 2)
        else { return nil }
        let priority = Double(bitPattern: bits)
        guard priority > 0, priority <= 1 else { return nil }
        var userInfo: [String: String] = [:]
        var last: String?
        for index in stride(from: 0, to: texts.count, by: 2) {
            // Two spellings of one character are one key to a dictionary: of such a pair none is taken silently.
            if let last, !ByteWriter.isBefore(last, texts[index]) { return nil }
            guard userInfo.updateValue(texts[index + 1], forKey: texts[index]) == nil else { return nil }
            last = texts[index]
        }
        return Manifest.Label(id: id, priority: priority, userInfo: userInfo)
    }
}
