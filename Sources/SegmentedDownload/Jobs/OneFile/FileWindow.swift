/// A range of a file that several tasks write together. One of them downloads it as if the range were a file of its own.
///
/// The task has an own, short file besides, under the name that its download's part has. It holds the lock of the task,
/// then the record of the completed range, and it is what is renamed when the range is complete.
package struct FileWindow: Hashable, Sendable {
    /// The path of the task's own file.
    package let part: String
    /// The path of the shared file.
    package let data: String
    /// The shared file's inode number, which is the same on all machines. The device number is not.
    package let inode: UInt64
    /// The task's bytes.
    package let range: Range<Int64>
    /// The length of the shared file.
    package let completeLength: Int64
    /// The ID of the plan (``SharedFilePlan``) that the task follows. Its record names it.
    package let plan: UInt64

    var length: Int64 { Int64(self.range.count) }
}

extension FileWindow {
    /// The content of a record: a finished file's, and the plan that it is for. A record of an earlier plan, which a crash
    /// may leave, says nothing about this plan's bytes.
    static func record(_ value: [UInt8], of plan: UInt64) -> [UInt8] { value + Array(Self.lastLine(of: plan).utf8) }

    /// Whether the content of a record is for a plan.
    static func isRecord(_ content: [UInt8], of plan: UInt64) -> Bool {
        content.suffix(Self.lastLine(of: plan).utf8.count).elementsEqual(Self.lastLine(of: plan).utf8)
    }

    private static func lastLine(of plan: UInt64) -> String { "\nplan \(String(plan, radix: 16))" }
}

extension FileWindow {
    /// Opens the shared file.
    ///
    /// - Throws: ``StorageError`` if it is not the one that the task began with, or is not as long: bytes of other tasks
    ///   were lost then.
    func openData(in storage: any Storage, _ mode: StorageOpenMode) throws(StorageError) -> any StorageFile {
        let file = try storage.open(self.data, mode)
        do throws(StorageError) {
            guard self.isData(try file.status()) else { throw self.replaced }
            return file
        } catch {
            file.close()
            throw error
        }
    }

    func isData(_ status: StorageStatus) -> Bool {
        status.kind == .file && status.inode == self.inode && status.length == self.completeLength
    }

    private var replaced: StorageError {
        StorageError(
            call: "open", path: self.data, errno: 0, condition: .other,
            text: "another program has replaced it or changed its length")
    }
}
