import CDeflate

/// Decodes the content codings of short documents that servers encode although nobody asked for it (RFC 9110 §8.4.1).
///
/// Files are never decoded: they are stored as they are sent.
package enum ContentCoding {
    package enum Failure: Error, Hashable {
        case malformed
        /// It is longer than the limit when it is decoded.
        case tooLong
    }

    /// A function of libdeflate that decodes one stream, and reports how much it has read and written.
    private typealias Decoder = (
        OpaquePointer?, UnsafeRawPointer?, Int, UnsafeMutableRawPointer?, Int, UnsafeMutablePointer<Int>?,
        UnsafeMutablePointer<Int>?
    ) -> libdeflate_result

    /// The document without its coding. Other codings than gzip and deflate are left as they are, and so is what is not encoded
    /// although the field says so.
    ///
    /// - Parameter coding: The value of `Content-Encoding`, in lower case; nil for none.
    package static func decoded(
        _ bytes: [UInt8], from coding: String?, lengthMax: Int
    ) throws(Failure) -> [UInt8] {
        switch coding {
        case "gzip", "x-gzip":
            guard bytes.starts(with: [0x1F, 0x8B]) else { return bytes }
            return try Self.decoded(bytes, lengthMax, libdeflate_gzip_decompress_ex)
        case "deflate":
            // Some servers send the bare format (RFC 1951) instead of that of zlib (RFC 1950).
            do throws(Failure) {
                return try Self.decoded(bytes, lengthMax, libdeflate_zlib_decompress_ex)
            } catch {
                guard error == .malformed else { throw error }
                return try Self.decoded(bytes, lengthMax, libdeflate_deflate_decompress_ex)
            }
        default: return bytes
        }
    }

    /// 1032: the most that deflate can shorten, so that memory is reserved for no more than can arrive.
    private static let ratioMax = 1032

    /// - Parameter decode: Called for each of the streams that follow each other, as gzip allows (RFC 1952 §2.2).
    private static func decoded(
        _ bytes: [UInt8], _ lengthMax: Int, _ decode: Decoder
    ) throws(Failure) -> [UInt8] {
        guard let decompressor = libdeflate_alloc_decompressor() else { throw .malformed }
        defer { libdeflate_free_decompressor(decompressor) }
        var decoded: [UInt8] = []
        var rest = bytes[...]
        repeat {
            let (result, consumed, piece) = Self.decodedStream(
                rest, lengthMax - decoded.count, decode, decompressor)
            switch result {
            case LIBDEFLATE_SUCCESS: break
            case LIBDEFLATE_INSUFFICIENT_SPACE: throw .tooLong
            default: throw .malformed
            }
            decoded += piece
            // A stream has at least one byte, so the loop ends.
            rest = rest.dropFirst(max(consumed, 1))
        } while !rest.isEmpty
        return decoded
    }

    private static func decodedStream(
        _ bytes: ArraySlice<UInt8>, _ lengthMax: Int, _ decode: Decoder, _ decompressor: OpaquePointer
    ) -> (result: libdeflate_result, consumed: Int, piece: [UInt8]) {
        var result = LIBDEFLATE_BAD_DATA
        var consumed = 0
        let capacity = min(lengthMax, bytes.count * Self.ratioMax)
        let piece = [UInt8](unsafeUninitializedCapacity: max(capacity, 1)) { buffer, count in
            let output = buffer.baseAddress
            var written = 0
            bytes.withUnsafeBytes { input in
                result = decode(decompressor, input.baseAddress, input.count, output, capacity, &consumed, &written)
            }
            count = written
            if result != LIBDEFLATE_SUCCESS { count = 0 }
        }
        return (result, consumed, piece)
    }
}
