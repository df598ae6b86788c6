#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// A file with a line of JSON for each download that ended, which any number of processes may append to.
///
/// A line is one `write` to a descriptor opened with `O_APPEND`, under the file's lock, so that lines are whole and in order. It is not
/// synced: a power cut may cost the last lines, and nothing depends on them.
struct HistoryFile: Sendable {
    let path: String
    let lengthMaximum: Int64

    /// 64 MiB: what is read of a history at most, whoever made it that long.
    private static let readMaximum = 64 << 20

    /// How often to look for the file that has just been begun anew by others.
    private static let attemptsMax = 10

    var olderPath: String { self.path + ".1" }

    /// Seconds since 1970.
    static var now: Int64 { Int64(time(nil)) }

    /// Whether the line is written, or the file is begun anew too often to write it; not if another process holds the lock.
    @discardableResult
    func append(_ entry: HistoryEntry) throws -> Bool {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let line = Array(try encoder.encode(entry)) + [UInt8(ascii: "\n")]
        for _ in 0..<Self.attemptsMax {
            switch try self.tryAppend(line) {
            case .written: return true
            case .locked: return false
            case .replaced: break
            }
        }
        return true
    }

    private enum Attempt {
        case written
        /// Another process holds the lock.
        case locked
        /// The file has just been begun anew.
        case replaced
    }

    private func tryAppend(_ line: [UInt8]) throws(StorageError) -> Attempt {
        let descriptor = try POSIXStorage.check("open", self.path) {
            open(self.path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
        }
        defer { close(descriptor) }
        do throws(StorageError) {
            try POSIXStorage.check("flock", self.path) { flock(descriptor, LOCK_EX | LOCK_NB) }
        } catch  where error.errno == EWOULDBLOCK {
            return .locked
        } catch  where [ENOSYS, ENOLCK, EOPNOTSUPP].contains(error.errno) {
            // Without locks: appended lines are whole all the same.
        }
        var status = stat()
        try POSIXStorage.check("fstat", self.path) { fstat(descriptor, &status) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_nlink > 0 else { return .replaced }
        var named = stat()
        guard lstat(self.path, &named) == 0, named.st_ino == status.st_ino, named.st_dev == status.st_dev else {
            return .replaced
        }
        let length = Int64(status.st_size)
        if length > 0, length + Int64(line.count) > self.lengthMaximum {
            try POSIXStorage.check("rename", self.olderPath) { rename(self.path, self.olderPath) }
            return .replaced
        }
        // A line torn by a full disk or a crash ends where the next begins.
        var last: UInt8 = UInt8(ascii: "\n")
        if length > 0 { _ = pread(descriptor, &last, 1, off_t(length - 1)) }
        let bytes = last == UInt8(ascii: "\n") ? line : [UInt8(ascii: "\n")] + line
        try POSIXStorage.check("write", self.path) { write(descriptor, bytes, bytes.count) }
        return .written
    }

    /// Oldest first; lines that are not entries are passed over.
    func entries() throws(DownloadError) -> [HistoryEntry] {
        let storage = POSIXStorage()
        var entries: [HistoryEntry] = []
        do throws(StorageError) {
            for path in [self.olderPath, self.path] where try storage.status(of: path)?.kind == .file {
                let file = try storage.open(path, .read)
                defer { file.close() }
                entries += Self.entries(in: try file.contents(limit: Self.readMaximum))
            }
        } catch {
            throw DownloadError(error.failure)
        }
        return entries
    }

    static func entries(in bytes: [UInt8]) -> [HistoryEntry] {
        let decoder = JSONDecoder()
        return bytes.split(separator: UInt8(ascii: "\n")).compactMap {
            try? decoder.decode(HistoryEntry.self, from: Data($0))
        }
    }
}
