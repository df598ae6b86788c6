import SegmentedDownload
import SegmentedDownloadCore

/// Every file of an accepted document has a source, stays below its directory, and has consistent data.
enum MetalinkProperties {
    static func check(_ bytes: [UInt8]) throws(Violation) {
        let metalink: Metalink
        do throws(DownloadError) {
            metalink = try Metalink(bytes)
        } catch {
            try require(error.code == .usage, "\(error) is not about a document")
            try require(
                error.message.unicodeScalars.allSatisfy { Reference.isShowable($0) },
                "\(error.message.debugDescription)")
            return
        }
        try require(!metalink.files.isEmpty, "a document without a file is accepted")
        try require(Set(metalink.files.map(\.path)).count == metalink.files.count, "two files have one path")
        for file in metalink.files { try Self.check(file) }
        // All other accepted encodings have NULs in their tags.
        guard !bytes.contains(0) else { return }
        let longer = try? Metalink(bytes + Array("\n<!-- <!DOCTYPE x> -->".utf8))
        try require(longer == metalink, "a comment after the document changes it")
        try require((try? Metalink(Array("<!DOCTYPE metalink>".utf8) + bytes)) == nil, "a document type is accepted")
    }

    private static func check(_ file: Metalink.File) throws(Violation) {
        let components = Reference.split(file.path.utf8, at: "/").map { String(decoding: $0, as: UTF8.self) }
        try require(components.count <= 32, "\(file.path.debugDescription) is too deep")
        for component in components {
            try require(
                SafeFilename(untrusted: component)?.value == component, "\(file.path.debugDescription) is not safe")
        }
        try require(!file.sources.isEmpty, "\(file.path) has no source")
        try require(Set(file.sources).count == file.sources.count, "\(file.path) has a source twice")
        try require(file.unsupportedSourceCount >= 0 && file.length ?? 0 >= 0, "\(file.path) has less than nothing")
        try require(
            Set(file.digests.map(\.algorithm)).count == file.digests.count, "\(file.path) has two digests of a kind")
        guard let pieces = file.pieces else { return }
        try require(pieces.length > 0 && !pieces.hexes.isEmpty, "\(file.path) has pieces of nothing")
        for hex in pieces.hexes {
            try require(ExpectedDigest(pieces.algorithm, hex: hex)?.hex == hex, "\(hex) is no digest of a piece")
        }
        guard let length = file.length else { return }
        let (whole, rest) = length.quotientAndRemainder(dividingBy: pieces.length)
        try require(
            whole + (rest > 0 ? 1 : 0) == Int64(pieces.hexes.count), "\(length) bytes have \(pieces.hexes.count) pieces"
        )
    }
}
