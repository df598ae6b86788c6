#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
/// A file with one line of JSON for each download that ended. Any number of processes may append to it.
///
/// Each line is a single write to a file opened to append (``StorageOpenMode/append``), under the file's lock, so lines are whole and
/// in order. The file is not synced: a power failure may lose the last lines.
struct HistoryFile: Sendable {
    let path: String
    let lengthMaximum: Int64
    let storage: any Storage

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
        let file = try self.storage.open(self.path, .append)
        defer { file.close() }
        switch try file.tryLock() {
        // Without locks an appended line is still whole.
        case .taken, .unsupported: break
        case .busy: return .locked
        }
        let status = try file.status()
        guard status.kind == .file, status.linkCount > 0,
            try self.storage.status(of: self.path)?.isSameFile(as: status) == true
        else { return .replaced }
        if status.length > 0, status.length + Int64(line.count) > self.lengthMaximum {
            try self.storage.rename(self.path, to: self.olderPath, replacing: true)
            return .replaced
        }
        let bytes = Self.endsLine(file, status.length) ? line : [UInt8(ascii: "\n")] + line
        let result: Result<Int, StorageError> = bytes.withUnsafeBytes { buffer in
            do throws(StorageError) {
                return .success(try file.write(buffer, at: status.length))
            } catch {
                return .failure(error)
            }
        }
        _ = try result.get()
        return .written
    }

    /// Whether a file of this length ends with a whole line. A line that a full disk or a crash has torn is terminated
    /// before the next one.
    private static func endsLine(_ file: any StorageFile, _ length: Int64) -> Bool {
        guard length > 0 else { return true }
        var last = UInt8(ascii: "\n")
        _ = withUnsafeMutableBytes(of: &last) { try? file.read(into: $0, at: length - 1) }
        return last == UInt8(ascii: "\n")
    }

    /// All entries, oldest first. Malformed lines are skipped.
    func entries() throws(DownloadError) -> [HistoryEntry] {
        var entries: [HistoryEntry] = []
        do throws(StorageError) {
            for path in [self.olderPath, self.path] where try self.storage.status(of: path)?.kind == .file {
                let file = try self.storage.open(path, .read)
                defer { file.close() }
                entries += Self.entries(in: try file.contents(limit: Self.readMaximum))
            }
        } catch {
            throw error.failure
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
