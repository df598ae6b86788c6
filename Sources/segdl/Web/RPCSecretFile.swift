import SegmentedDownload

#if canImport(Musl)
    import Musl
#elseif canImport(Glibc)
    import Glibc
#endif

/// The file with the secret of clients that connect over TCP. Only its owner can read it.
enum RPCSecretFile {
    /// The secret in the file. If there is none, a random one is made.
    ///
    /// - Throws: ``ServiceFailure`` if the file cannot be used, or other users have access to it.
    static func secret(at path: String) throws(ServiceFailure) -> String {
        if let facts = FileFacts(path) {
            guard facts.owner == geteuid(), !facts.isOpenToOthers else {
                throw ServiceFailure(
                    "other users have access to \(path.shown)", hint: "Run chmod 600 \(path.shellWord)")
            }
            let file = SystemCalls.openFile(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
            guard file >= 0 else { throw ServiceFailure("cannot open", path, errno: errno) }
            defer { SystemCalls.closeFile(file) }
            let text = withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
                let count = SystemCalls.readBytes(file, buffer)
                return String(decoding: UnsafeRawBufferPointer(rebasing: buffer[..<max(count, 0)]), as: UTF8.self)
            }
            let secret = text.filter { !$0.isWhitespace }
            guard secret.utf8.count >= 8 else {
                throw ServiceFailure("the secret in \(path.shown) has fewer than 8 bytes", hint: "Delete the file")
            }
            return secret
        }
        var generator = SystemRandomNumberGenerator()
        let secret = (0..<4).map { _ in String(generator.next() | 1 << 63, radix: 36) }.joined()
        let file = SystemCalls.openFile(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw ServiceFailure("cannot create", path, errno: errno) }
        defer { SystemCalls.closeFile(file) }
        let line = Array((secret + "\n").utf8)
        guard line.withUnsafeBytes({ SystemCalls.writeBytes(file, $0) }) == line.count, fsync(file) == 0 else {
            throw ServiceFailure("cannot write", path, errno: errno)
        }
        return secret
    }
}
