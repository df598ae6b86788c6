#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Secrets among the arguments. Other users see the arguments of a running process with `ps`.
enum SecretArguments {
    /// Options whose values are secret or may contain a secret.
    private static let options = Set(
        Self.secret.flatMap(\.names).map { "--\($0)" } + ["--proxy-user", "--proxy", "--all-proxy"])

    /// The letters of these options, and of other options with values.
    private static let secretLetters = Self.letters(Self.secret)
    private static let valueLetters =
        Self.letters(FileOption.all.filter { !$0.isFlag }).filter { !Self.secretLetters.contains($0) }
        + Array("xji".utf8)

    /// The file options that may have a secret value.
    private static let secret = FileOption.all.filter { $0.mayBeSecret }

    private static func letters(_ options: [FileOption]) -> [UInt8] {
        options.flatMap(\.letters).compactMap(\.asciiValue)
    }

    /// Overwrites the secrets in the memory that the system shows. Call it after the arguments are read.
    static func hide() {
        guard let area = self.area else { return }
        var start = area.startIndex
        var isValue = false
        while let end = area[start...].firstIndex(of: 0) {
            let found = Self.secrets(in: Array(area[start..<end]), isValue: isValue)
            for range in found.ranges {
                for index in range { area[start + index] = UInt8(ascii: "*") }
            }
            isValue = found.isNext
            start = end + 1
        }
    }

    /// The bytes of an argument to hide, and whether to hide the next argument entirely. Arguments need not be UTF-8.
    ///
    /// - Parameter isValue: Whether the argument is the value of the secret option before it.
    static func secrets(in bytes: [UInt8], isValue: Bool) -> (ranges: [Range<Int>], isNext: Bool) {
        if isValue { return ([0..<bytes.count], false) }
        let dash = UInt8(ascii: "-")
        guard bytes.count > 1, bytes[0] == dash else { return (Self.userinfo(in: bytes), false) }
        guard bytes[1] != dash else {
            let equals = bytes.firstIndex(of: UInt8(ascii: "="))
            let isSecret = Self.options.contains(String(decoding: bytes[..<(equals ?? bytes.count)], as: UTF8.self))
            guard isSecret else { return (Self.userinfo(in: bytes), false) }
            return equals.map { ([($0 + 1)..<bytes.count], false) } ?? ([], true)
        }
        // Letters in one word, such as -qu NAME:PASSWORD or -uNAME:PASSWORD. The value of the first letter that takes
        // one is the rest of the word.
        for index in 1..<bytes.count {
            if Self.secretLetters.contains(bytes[index]) {
                return index + 1 < bytes.count ? ([(index + 1)..<bytes.count], false) : ([], true)
            }
            if Self.valueLetters.contains(bytes[index]) { break }
        }
        return (Self.userinfo(in: bytes), false)
    }

    /// The NAME:PASSWORD in each http://NAME:PASSWORD@HOST/: it ends at the last @ before the path.
    private static func userinfo(in bytes: [UInt8]) -> [Range<Int>] {
        let mark = Array("://".utf8)
        return bytes.indices.filter { bytes[$0...].starts(with: mark) }.compactMap { place in
            let begin = place + mark.count
            let end = bytes[begin...].firstIndex { "/?#".utf8.contains($0) } ?? bytes.count
            return bytes[begin..<end].lastIndex(of: UInt8(ascii: "@")).map { begin..<$0 }
        }
    }

    /// The memory that `/proc/PID/cmdline` shows: fields 48 and 49 of `proc_pid_stat(5)`.
    private static var area: UnsafeMutableBufferPointer<UInt8>? {
        guard let data = FileManager.default.contents(atPath: "/proc/self/stat") else { return nil }
        // The program's name, in parentheses, may contain spaces and parentheses.
        let text = String(decoding: data, as: UTF8.self)
        guard let name = text.lastIndex(of: ")") else { return nil }
        let fields = text[text.index(after: name)...].split(separator: " ")
        guard fields.count > 46, let start = UInt(fields[45]), let end = UInt(fields[46]), start > 0, end > start,
            let pointer = UnsafeMutablePointer<UInt8>(bitPattern: start)
        else { return nil }
        return UnsafeMutableBufferPointer(start: pointer, count: Int(end - start))
    }
}
