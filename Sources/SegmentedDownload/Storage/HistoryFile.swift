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

/// A file with one line of JSON for each download that ended. Any number of processes may append to it.
///
/// Each line is a single `write` to a descriptor opened with `O_APPEND`, under the file's lock, so lines are whole and
/// in order. The file is not synced: a power failure may lose the last lines.
struct HistoryFile: Sendable {
    let path: String
    let lengthMaximum: Int64

    /// 64 MiB: at most this much of a history file is read.
    private static let readMaximum = 64 << 20

    /// 10: how often to reopen a file that other processes keep replacing.
    private static let attemptsMax = 10

    var olderPath: String { self.path + ".1" }

    /// Appends a line.
    ///
    /// - Returns: `false` if another process holds the lock. `true` if the line was written, or was given up because
    ///   the file kept being replaced.
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
        /// The file was renamed and must be opened again.
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
            // Without locks an appended line is still whole.
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
        // A line torn by a full disk or a crash is terminated before the new one.
        var last: UInt8 = UInt8(ascii: "\n")
        if length > 0 { _ = pread(descriptor, &last, 1, off_t(length - 1)) }
        let bytes = last == UInt8(ascii: "\n") ? line : [UInt8(ascii: "\n")] + line
        try POSIXStorage.check("write", self.path) { write(descriptor, bytes, bytes.count) }
        return .written
    }

    /// All entries, oldest first. Malformed lines are skipped.
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
