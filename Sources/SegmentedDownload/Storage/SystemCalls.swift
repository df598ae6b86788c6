#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// System calls under other names, because methods named `open`, `close` or `rename` would hide them, and the name of the module
/// that has them depends on the C library.
package enum SystemCalls {
    /// The error of the last call that failed.
    package static var errorNumber: CInt { errno }

    /// The length of a page of memory and of the file cache.
    static let pageLength = Int(getpagesize())

    package static func openFile(_ path: String, _ flags: CInt, _ mode: UInt32 = 0) -> CInt { open(path, flags, mode) }

    package static func closeFile(_ descriptor: CInt) { _ = close(descriptor) }

    package static func readBytes(_ descriptor: CInt, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
        read(descriptor, buffer.baseAddress, buffer.count)
    }

    package static func writeBytes(_ descriptor: CInt, _ bytes: UnsafeRawBufferPointer) -> Int {
        write(descriptor, bytes.baseAddress, bytes.count)
    }

    static func makeDirectory(_ path: String, _ permissions: UInt32) -> CInt { mkdir(path, permissions) }

    static func checkAccess(_ path: String, _ mode: CInt) -> CInt { access(path, mode) }

    static func removeName(_ path: String) -> CInt { unlink(path) }

    static func renameFile(_ path: String, _ other: String) -> CInt { rename(path, other) }

    static func linkFile(_ path: String, _ other: String) -> CInt { link(path, other) }

    /// A socket for connections, which does not block.
    package static func streamSocket(_ family: CInt) -> CInt {
        #if canImport(Musl)
            socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
        #else
            socket(
                family, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
        #endif
    }

    package static func datagramSocket(_ family: CInt) -> CInt {
        #if canImport(Musl)
            socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0)
        #else
            socket(family, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #endif
    }
}
