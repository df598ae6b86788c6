import SegmentedDownload

/// An error of a system call, with the number, condition and text that Linux and ``POSIXStorage`` give it.
struct SystemError {
    let number: Int32
    let condition: StorageError.Condition
    let text: String

    static let notFound = SystemError(2, .notFound, "No such file or directory")
    static let inputOutput = SystemError(5, .other, "Input/output error")
    static let badDescriptor = SystemError(9, .other, "Bad file descriptor")
    static let exists = SystemError(17, .exists, "File exists")
    static let notDirectory = SystemError(20, .isDirectory, "Not a directory")
    static let isDirectory = SystemError(21, .isDirectory, "Is a directory")
    static let invalid = SystemError(22, .other, "Invalid argument")
    static let noSpace = SystemError(28, .noSpace, "No space left on device")
    static let nameTooLong = SystemError(36, .nameTooLong, "File name too long")
    /// The caller's process was killed. No system reports that.
    static let processGone = SystemError(5, .other, "the process is gone")

    private init(_ number: Int32, _ condition: StorageError.Condition, _ text: String) {
        self.number = number
        self.condition = condition
        self.text = text
    }

    /// The error of a call on a path.
    func of(_ call: String, _ path: String) -> StorageError {
        StorageError(call: call, path: path, errno: self.number, condition: self.condition, text: self.text)
    }
}
