#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// System calls under other names, because methods named `open`, `close`, `read` and `write` would hide them.
enum SystemCalls {
    static func openFile(_ path: String, _ flags: CInt, _ mode: mode_t = 0) -> CInt { open(path, flags, mode) }

    static func closeFile(_ descriptor: CInt) { _ = close(descriptor) }

    static func readBytes(_ descriptor: CInt, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        read(descriptor, buffer.baseAddress, buffer.count)
    }

    static func writeBytes(_ descriptor: CInt, _ bytes: UnsafeRawBufferPointer) -> Int {
        write(descriptor, bytes.baseAddress, bytes.count)
    }
}
