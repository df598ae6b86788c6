#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The machine's name (`gethostname`). It is not looked up.
enum MachineName {
    static var current: String {
        var bytes = [CChar](repeating: 0, count: 256)
        // One byte less, so that a name that is cut off ends with zero.
        guard gethostname(&bytes, bytes.count - 1) == 0 else { return "localhost" }
        return String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
