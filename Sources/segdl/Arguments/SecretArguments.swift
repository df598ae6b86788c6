import SegmentedDownload

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
        FileOption.all.filter { $0.mayBeSecret }.flatMap(\.spellings) + [
            "--proxy-user", "--proxy", "--all-proxy", "--rpc-secret",
        ])

    /// The first of these arguments that has a secret, or precedes one; for a URL, only its kind.
    static func first(in arguments: [String]) -> String? {
        for argument in arguments {
            let found = Self.secrets(in: Array(argument.utf8), isValue: false)
            if found.isNext { return argument }
            guard !found.ranges.isEmpty else { continue }
            return ArgumentWord(Array(argument.utf8)).option ?? "a password in a URL"
        }
        return nil
    }

    /// The parser's message without the secrets of the arguments that it quotes.
    static func removed(from message: String, about arguments: [String]) -> String {
        let walk = ArgumentWalk(arguments)
        var message = message
        for item in walk.items {
            let option = ArgumentWord(Array(item.word.utf8)).option
            let text = item.value ?? item.word
            let isSecret = option.map { Self.options.contains($0) } ?? false
            if isSecret || text.contains("//") {
                message.replace("'\(text)'", with: isSecret ? "'…'" : "'\(SourceURL.withoutSecrets(text))'")
            }
        }
        for text in walk.rest where text.contains("//") {
            message.replace("'\(text)'", with: "'\(SourceURL.withoutSecrets(text))'")
        }
        return message
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
    /// The argument after a secret option is hidden even if it begins with a dash, and also after `--`: it is better to
    /// hide too much.
    ///
    /// - Parameter isValue: Whether the argument is the value of the secret option before it.
    static func secrets(in bytes: [UInt8], isValue: Bool) -> (ranges: [Range<Int>], isNext: Bool) {
        if isValue { return ([0..<bytes.count], false) }
        let word = ArgumentWord(bytes)
        guard let option = word.option, Self.options.contains(option) else { return (Self.userinfo(in: bytes), false) }
        return word.valueStart.map { ([$0..<bytes.count], false) } ?? ([], word.awaitsValue)
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
