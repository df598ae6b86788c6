import Crypto
import SegmentedDownloadCore

/// Computes one digest over bytes that come in order.
struct RunningDigest {
    private enum State {
        case crc32(CRC32)
        case md5(Insecure.MD5)
        case sha1(Insecure.SHA1)
        case sha256(SHA256)
        case sha512(SHA512)
    }

    let algorithm: ExpectedDigest.Algorithm
    private var state: State

    init(_ algorithm: ExpectedDigest.Algorithm) {
        self.algorithm = algorithm
        self.state =
            switch algorithm {
            case .crc32: .crc32(CRC32())
            case .md5: .md5(Insecure.MD5())
            case .sha1: .sha1(Insecure.SHA1())
            case .sha256: .sha256(SHA256())
            case .sha512: .sha512(SHA512())
            }
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        switch self.state {
        case .crc32(var crc):
            crc.update(bytes)
            self.state = .crc32(crc)
        case .md5(var hash):
            hash.update(bufferPointer: bytes)
            self.state = .md5(hash)
        case .sha1(var hash):
            hash.update(bufferPointer: bytes)
            self.state = .sha1(hash)
        case .sha256(var hash):
            hash.update(bufferPointer: bytes)
            self.state = .sha256(hash)
        case .sha512(var hash):
            hash.update(bufferPointer: bytes)
            self.state = .sha512(hash)
        }
    }

    /// The digest so far, as hexadecimal digits.
    var hex: String {
        switch self.state {
        case .crc32(let crc): crc.hex
        case .md5(let hash): hash.finalize().hex
        case .sha1(let hash): hash.finalize().hex
        case .sha256(let hash): hash.finalize().hex
        case .sha512(let hash): hash.finalize().hex
        }
    }
}

extension Sequence<UInt8> {
    /// Two hexadecimal digits for each byte.
    var hex: String { self.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}

extension CRC32 {
    /// Eight hexadecimal digits.
    package var hex: String {
        let digits = String(self.value, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}

extension StorageFile {
    /// Hands the file's bytes up to `length` to `body`, piece by piece in order; returns how many there were.
    ///
    /// - Parameter interruption: looked at between pieces; once raised, reading ends with a `cancelled` failure.
    func read(
        length: Int64, unless interruption: Latch? = nil, _ body: (UnsafeRawBufferPointer) -> Void
    ) throws -> Int64 {
        // 1 MiB: large enough that the call's cost vanishes, small enough to stay in the cache.
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while offset < length {
            if interruption?.isRaised == true { throw Failure(.cancelled, "verifying was interrupted") }
            let piece = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(Int(clamping: length - offset)))
            let count = try self.readFully(into: piece, at: offset)
            body(UnsafeRawBufferPointer(rebasing: piece[..<count]))
            offset += Int64(count)
            if count < piece.count { break }
        }
        return offset
    }

    /// The digests of the file's first `length` bytes, in the order asked for.
    func digests(
        _ algorithms: [ExpectedDigest.Algorithm], length: Int64, unless interruption: Latch? = nil
    ) throws -> [String] {
        var running = algorithms.map { RunningDigest($0) }
        _ = try self.read(length: length, unless: interruption) { bytes in
            for index in running.indices { running[index].update(bytes) }
        }
        return running.map(\.hex)
    }
}
