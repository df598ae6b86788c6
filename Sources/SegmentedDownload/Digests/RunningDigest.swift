import CNettle
import SegmentedDownloadCore

/// Computes one digest over bytes that arrive in order.
///
/// Nettle's states are plain values, so a state between two blocks can be stored and restored later.
package struct RunningDigest {
    private enum State {
        case crc32(CRC32)
        case reflected(ReflectedCRC)
        case md5(md5_ctx)
        case sha1(sha1_ctx)
        case sha256(sha256_ctx)
        case sha512(sha512_ctx)
    }

    let algorithm: ExpectedDigest.Algorithm
    private var state: State

    package init(_ algorithm: ExpectedDigest.Algorithm) {
        self.algorithm = algorithm
        switch algorithm {
        case .crc32: self.state = .crc32(CRC32())
        case .crc32c: self.state = .reflected(ReflectedCRC(.castagnoli))
        case .crc64nvme: self.state = .reflected(ReflectedCRC(.nvme))
        case .md5:
            var hash = md5_ctx()
            nettle_md5_init(&hash)
            self.state = .md5(hash)
        case .sha1:
            var hash = sha1_ctx()
            nettle_sha1_init(&hash)
            self.state = .sha1(hash)
        case .sha256:
            var hash = sha256_ctx()
            nettle_sha256_init(&hash)
            self.state = .sha256(hash)
        case .sha512:
            var hash = sha512_ctx()
            nettle_sha512_init(&hash)
            self.state = .sha512(hash)
        }
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        let data = bytes.bindMemory(to: UInt8.self).baseAddress
        switch self.state {
        case .crc32(var crc):
            crc.update(bytes)
            self.state = .crc32(crc)
        case .reflected(var crc):
            crc.update(bytes)
            self.state = .reflected(crc)
        case .md5(var hash):
            nettle_md5_update(&hash, bytes.count, data)
            self.state = .md5(hash)
        case .sha1(var hash):
            nettle_sha1_update(&hash, bytes.count, data)
            self.state = .sha1(hash)
        case .sha256(var hash):
            nettle_sha256_update(&hash, bytes.count, data)
            self.state = .sha256(hash)
        case .sha512(var hash):
            nettle_sha512_update(&hash, bytes.count, data)
            self.state = .sha512(hash)
        }
    }

    /// The digest of the bytes so far, in hexadecimal.
    package var hex: String { self.bytes.hex }

    /// The digest of the bytes so far.
    package var bytes: [UInt8] {
        let length = self.algorithm.length
        var bytes = [UInt8](repeating: 0, count: length)
        switch self.state {
        case .crc32(let crc): withUnsafeBytes(of: crc.value.bigEndian) { bytes = Array($0) }
        case .reflected(let crc): withUnsafeBytes(of: crc.value.bigEndian) { bytes = Array($0.suffix(length)) }
        case .md5(var hash): nettle_md5_digest(&hash, length, &bytes)
        case .sha1(var hash): nettle_sha1_digest(&hash, length, &bytes)
        case .sha256(var hash): nettle_sha256_digest(&hash, length, &bytes)
        case .sha512(var hash): nettle_sha512_digest(&hash, length, &bytes)
        }
        return bytes
    }
}

// MARK: Saving and restoring the state

extension RunningDigest {
    /// The codes of the algorithms in manifests.
    private static let codes: [(UInt8, ExpectedDigest.Algorithm)] = [
        (1, .md5), (2, .sha1), (3, .sha256), (4, .sha512), (5, .crc32c), (6, .crc64nvme),
    ]

    /// 128: a multiple of every algorithm's block length. States are stored only at multiples of it.
    static let stateAlignment: Int64 = 128

    /// The state after `offset` bytes; `nil` if `offset` is not a multiple of ``stateAlignment``, and for CRC-32, which
    /// is combined from blocks instead.
    func saved(at offset: Int64) -> DigestState? {
        guard offset % Self.stateAlignment == 0, let code = Self.codes.first(where: { $0.1 == self.algorithm })?.0
        else {
            return nil
        }
        let bytes: [UInt8]
        switch self.state {
        case .crc32: return nil
        case .reflected(let crc): bytes = withUnsafeBytes(of: crc.register) { Array($0) }
        case .md5(let hash): bytes = withUnsafeBytes(of: hash.state) { Array($0) }
        case .sha1(let hash): bytes = withUnsafeBytes(of: hash.state) { Array($0) }
        case .sha256(let hash): bytes = withUnsafeBytes(of: hash.state) { Array($0) }
        case .sha512(let hash): bytes = withUnsafeBytes(of: hash.state) { Array($0) }
        }
        return DigestState(algorithm: code, offset: offset, bytes: bytes)
    }

    /// Restores a stored state; `nil` if its algorithm, offset or length is unknown here.
    init?(_ saved: DigestState) {
        guard let algorithm = Self.codes.first(where: { $0.0 == saved.algorithm })?.1,
            saved.offset % Self.stateAlignment == 0
        else { return nil }
        self.init(algorithm)
        let offset = UInt64(saved.offset)
        func restore<Words>(_ words: inout Words) -> Bool {
            withUnsafeMutableBytes(of: &words) { target in
                guard target.count == saved.bytes.count else { return false }
                target.copyBytes(from: saved.bytes)
                return true
            }
        }
        switch self.state {
        case .crc32: return nil
        case .reflected(var crc):
            guard restore(&crc.register) else { return nil }
            self.state = .reflected(crc)
        case .md5(var hash):
            guard restore(&hash.state) else { return nil }
            hash.count = offset / UInt64(MD5_BLOCK_SIZE)
            self.state = .md5(hash)
        case .sha1(var hash):
            guard restore(&hash.state) else { return nil }
            hash.count = offset / UInt64(SHA1_BLOCK_SIZE)
            self.state = .sha1(hash)
        case .sha256(var hash):
            guard restore(&hash.state) else { return nil }
            hash.count = offset / UInt64(SHA256_BLOCK_SIZE)
            self.state = .sha256(hash)
        case .sha512(var hash):
            guard restore(&hash.state) else { return nil }
            hash.count_low = offset / UInt64(SHA512_BLOCK_SIZE)
            self.state = .sha512(hash)
        }
    }
}

extension StorageFile {
    /// Passes the file's bytes up to `length` to `body`, in pieces and in order.
    ///
    /// - Parameter interruption: Checked between pieces. Once raised, reading ends with a failure of code `cancelled`.
    /// - Returns: The number of bytes read.
    func read(
        length: Int64, unless interruption: Latch? = nil, _ body: (UnsafeRawBufferPointer) -> Void
    ) throws -> Int64 {
        // 1 MiB: large enough to make the cost of a call negligible, small enough to stay in the cache.
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < length {
            if interruption?.isRaised == true { throw DownloadError(.cancelled, "verifying was interrupted") }
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: length - offset)))
            let count = try self.readFully(into: piece, at: offset)
            body(UnsafeRawBufferPointer(rebasing: piece[..<count]))
            offset += Int64(count)
            if count < piece.count { break }
        }
        return offset
    }

    /// The digests of the file's first `length` bytes, in the order of `algorithms`.
    func digests(
        _ algorithms: [ExpectedDigest.Algorithm], length: Int64, unless interruption: Latch? = nil
    ) throws -> [String] {
        var running = algorithms.map { RunningDigest($0) }
        _ = try self.read(length: length, unless: interruption) { bytes in
            for index in running.indices { running[index].update(bytes) }
        }
        return running.map(\.hex)
    }

    /// The digest of a range of the bytes on disk, in hexadecimal.
    func digest(
        _ algorithm: ExpectedDigest.Algorithm, of range: Range<Int64>, unless interruption: Latch
    ) throws -> String {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(BlockLayout.blockLength), alignment: 4096)
        defer { buffer.deallocate() }
        var running = RunningDigest(algorithm)
        var offset = range.lowerBound
        while offset < range.upperBound {
            if interruption.isRaised { throw DownloadError(.cancelled, "computing a digest was interrupted") }
            let wanted = Int(min(Int64(buffer.count), range.upperBound - offset))
            let count = try self.readFully(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
            guard count == wanted else {
                throw DownloadError(.integrity, "the file ends before byte \(offset + Int64(wanted))")
            }
            running.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        return running.hex
    }
}
